"""The 256 words of the synthetic retrieval language, and their token ids.

Four special tokens, then filler words, names and places; no word is in two of the groups.
"""

SPECIAL = ("<pad>", "<s>", "<unk>", "where")
PAD_ID, BOS_ID, UNK_ID, WHERE_ID = range(4)

_FILLER = (
    "a again all and at autumn before bird bread bright but by calm cloud cold day door down early "
    "far fire for from garden grass green here hill house in it lamp late leaf light long market "
    "moon morning near night of old on over path quiet rain river road sea slow snow so stone "
    "the then under wind with"
)

_NAMES = (
    "ada adam agnes aldo alice alma amir ana anton ari asha astrid basil bela ben bianca boris "
    "bruno carl carmen cecil clara cora cyrus dana daria diego dina dora edgar elias elif elsa "
    "emil emma enzo erik esra esther eva fatima felix fiona flora frida gabor gemma gina greta "
    "hana hans hector hugo ida igor ilse ines ingrid iris isaac ivan jana jonas judith julia kai "
    "karim karla kenji kira klaus lara lars leila leo lena linus lucia luis mabel magda marco "
    "maria marta maya mila milo mina mona nadia nell nico nina nora olaf olga omar oscar otto "
    "pablo paula pedro petra quinn rosa ruben ruth sami sara selma simon sven tara theo tilda "
    "tobias ulla uma ursula vera viktor vito wanda willa xenia yara yusuf zoe"
)

_PLACES = (
    "accra amman ankara athens baku berlin bern bogota boston bremen brno cairo chennai cork cusco "
    "dakar delhi denver doha dublin durban fez geneva genoa ghent graz hanoi havana izmir jaipur "
    "kazan kyiv kyoto lagos lahore lima lisbon london lyon macau madrid malmo manila milan minsk "
    "mumbai nairobi naples osaka oslo paris porto prague quito riga rome seoul tunis turin vienna "
    "vilnius warsaw york zagreb"
)

FILLER, NAMES, PLACES = (tuple(words.split()) for words in (_FILLER, _NAMES, _PLACES))

WORDS = SPECIAL + FILLER + NAMES + PLACES
"""Token id -> word."""

FIRST_FILLER = len(SPECIAL)
FIRST_NAME = FIRST_FILLER + len(FILLER)
FIRST_PLACE = FIRST_NAME + len(NAMES)
VOCAB_SIZE = len(WORDS)

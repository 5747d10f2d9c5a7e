"""What a model is shown while it trains: the curricula, each a list of stages. No torch.

A curriculum grows the number of facts first, then the length: a model that starts with many
facts stays near chance for a long time, since nothing yet tells it which word goes with which.
"""

from dataclasses import dataclass

from kvlab.errors import InvalidArgument


@dataclass(frozen=True)
class Stage:
    """One step of a curriculum: sequences of `seq_len` tokens with `num_facts` facts."""

    num_facts: int
    seq_len: int
    num_questions: int
    num_names: int


CURRICULUM = (
    Stage(num_facts=2, seq_len=16, num_questions=1, num_names=4),
    Stage(num_facts=3, seq_len=20, num_questions=2, num_names=8),
    Stage(num_facts=4, seq_len=24, num_questions=4, num_names=16),
    Stage(num_facts=6, seq_len=36, num_questions=6, num_names=32),
    Stage(num_facts=8, seq_len=48, num_questions=8, num_names=64),
    Stage(num_facts=12, seq_len=72, num_questions=12, num_names=128),
    Stage(num_facts=16, seq_len=96, num_questions=16, num_names=128),
    Stage(num_facts=24, seq_len=160, num_questions=24, num_names=128),
    Stage(num_facts=32, seq_len=256, num_questions=32, num_names=128),
    Stage(num_facts=32, seq_len=512, num_questions=32, num_names=128),
    Stage(num_facts=32, seq_len=1024, num_questions=32, num_names=128),
    Stage(num_facts=32, seq_len=2048, num_questions=32, num_names=128),
)
"""Facts grow first, then length; the names to tell apart grow with the facts."""

FIRST_LONG_STAGE = 8
"""From this stage on, part of the batches come from the earlier long stages again."""


@dataclass(frozen=True)
class Recipe:
    """The stages of a kind of run, and what is measured on the way.

    first_long_stage: from it on, part of the batches come from earlier long stages again.
    log_every, probe_every: steps from one logged step to the next, and from one probe (recall at
    512 tokens on fresh sequences) to the next; 0 is never. lengths: the tokens at which 32 facts
    are asked at the end; hard: one harder task, or None.
    """

    stages: tuple[Stage, ...]
    first_long_stage: int
    lengths: tuple[int, ...]
    hard: Stage | None = None
    log_every: int = 10
    probe_every: int = 0


HARD = Stage(num_facts=128, seq_len=1024, num_questions=128, num_names=128)
"""Every name of the language in one sequence, four times the facts that training shows."""

TWINS = (Stage(num_facts=2, seq_len=8, num_questions=1, num_names=4), *CURRICULUM[1:11])
"""No filler at all in the first stage, which is left 5 to 10 times sooner; ends at 1,024 tokens."""

_COMPARED = {"lengths": (512, 1024, 2048), "hard": HARD}

RECIPES = {
    "tiny": Recipe(CURRICULUM, FIRST_LONG_STAGE, lengths=(512, 1024, 2048, 4096)),
    "twins": Recipe(TWINS, FIRST_LONG_STAGE, **_COMPARED, probe_every=25),
    "twins-slow": Recipe(CURRICULUM[:11], FIRST_LONG_STAGE, **_COMPARED, probe_every=25),
    "uptrain": Recipe(TWINS[2:], FIRST_LONG_STAGE - 2, **_COMPARED, log_every=5, probe_every=5),
}
"""`tiny` trains the bundled model, `twins` models to compare, `uptrain` models made from others.

`twins-slow` is `twins` with the first stage of `tiny`: 8 words of filler more, and nothing else.
`uptrain` begins with four facts: a pooled model that was shown 32 at once stayed at chance.
"""


def find_recipe(name: str) -> Recipe:
    """Return a recipe by its name; raises `InvalidArgument` for any other.

    >>> find_recipe("tiny").stages[-1].seq_len
    2048
    """
    if name not in RECIPES:
        raise InvalidArgument("recipe", name, f"must be one of {', '.join(RECIPES)}")
    return RECIPES[name]

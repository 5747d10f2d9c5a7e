"""The exercises of chapter 09: a hybrid's bytes, three numbers, and a rule of one's own."""

from kvlab.course import checks_09
from kvlab.course.exercises import CheckResult, Exercise, check

HYBRID = Exercise(
    id="09-a",
    title="Ten of 62 layers",
    statement=(
        "Gemma 3 27B has 62 layers with 16 KV heads of 128. Ten of them see everything, 52 have "
        "a window of 1,024 tokens (count 1,024 for each). How many GiB does a request of 131,072 "
        "tokens hold in 16 bit?"
    ),
    grade=checks_09.grade_hybrid,
    why=(
        "(10 x 131,072 + 52 x 1,024) tokens of 2 x 16 x 128 x 2 bytes. The ten full layers hold "
        "96 % of it: a window saves in its own layers and nowhere else."
    ),
    hints=(
        "How many bytes does one token take in one layer?",
        "How many tokens does a full layer hold, and how many a windowed one?",
        "Add up the tokens of all layers, then multiply by the bytes of one.",
    ),
    solution=(
        "tokens = 10 * 131_072 + 52 * 1024\n"
        'answer = f"{tokens * 2 * 16 * 128 * 2 / 2**30:.2f} GiB"\n'
    ),
)

THREE_NUMBERS = Exercise(
    id="09-b",
    title="Three numbers",
    statement=(
        "A layer with a window of 128 tokens, the own one counted, has read 8,000 tokens. Write "
        "three numbers: tokens seen, tokens it must keep, and the position of the next token."
    ),
    grade=checks_09.grade_three_numbers,
    why=(
        "The next query counts itself and sees 127 before it. It stands at 8,000, because angles "
        "tell distances in the text, not in the memory."
    ),
    hints=(
        "What did the layer read, whatever it let go of?",
        "The next query is one of the 128 tokens in its window.",
        "Positions count from 0. Does letting go of a token move the others?",
    ),
    solution="answer = (8000, 127, 8000)\n",
)

OWN_SCORE = Exercise(
    id="09-c",
    title="Your own rule",
    statement=(
        "Write `score(received, age, key_norm)`, the rule that decides which 12 % of the tokens "
        "stay. Each argument is a tensor with a number for each token held: the attention it drew "
        "so far, the tokens read since it came (1 is the newest), the length of its key. Return "
        "one of the same shape; highest stays. Beat heavy hitters on `tiny`, on texts that this "
        "page has not shown. Roughly 1 to 10 lines."
    ),
    stub="def score(received, age, key_norm):\n    ...",
    grade=checks_09.grade_score,
    why=(
        "A sum favours what has been there for long. Divided by the queries that could see a "
        "token, a late fact has a chance. And heavy hitters spend half their budget on the newest "
        "tokens, which hold few facts here. It is a rule for this task: in real language you "
        "would protect the first tokens and the newest."
    ),
    hints=(
        "Look at the map of heavy hitters at 12 %: where are the facts that it loses?",
        "An early token was seen by more queries than a late one. How many?",
        "Try the attention that a token draws from each query that could see it.",
    ),
    solution="def score(received, age, key_norm):\n    return received / age\n",
)

EXERCISES = (HYBRID, THREE_NUMBERS, OWN_SCORE)


def check_hybrid(answer: object) -> CheckResult:
    """Check 09-a: a size with its unit.

    >>> check_hybrid("62 GiB").grade.misconception
    'all-full'
    """
    return check("09-a", answer)


def check_three_numbers(answer: object) -> CheckResult:
    """Check 09-b: three numbers."""
    return check("09-b", answer)


def check_own_score(answer: object) -> CheckResult:
    """Check 09-c: a function `score(received, age, key_norm)`, tried on `tiny`."""
    return check("09-c", answer)

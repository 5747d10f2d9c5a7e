"""The exercises of chapter 07: what is found, what a crowd takes, what it costs."""

from kvlab.course import checks_07
from kvlab.course.exercises import CheckResult, Exercise, check

HITS = Exercise(
    id="07-a",
    title="To the token",
    statement=(
        "Write `hit_tokens(prompt, equal, block_size)`: a prompt of `prompt` tokens begins with "
        "`equal` tokens of one that was computed before. How many of them are found? Roughly 2 "
        "lines."
    ),
    stub="def hit_tokens(prompt, equal, block_size):\n    ...",
    grade=checks_07.grade_hit,
    why="Only full blocks are found, and the last token of the prompt is always computed.",
    hints=(
        "Only full blocks have a name: round down.",
        "What if the whole prompt is known? Something must still be computed.",
        "Take the smaller of `equal` and `prompt - 1`, then round down to whole blocks.",
    ),
    solution=(
        "def hit_tokens(prompt, equal, block_size):\n"
        "    usable = min(equal, prompt - 1)\n"
        "    return usable // block_size * block_size\n"
    ),
)

CROWD = Exercise(
    id="07-b",
    title="The room of a crowd",
    statement=(
        "64 requests share a system prompt of 1,500 tokens; behind it each has 200 tokens of its "
        "own. Blocks hold 16 tokens, all prompts were computed one after another and all requests "
        "are still running; prefix caching is on. How many blocks are in use?"
    ),
    grade=checks_07.grade_crowd,
    why=(
        "1,500 tokens fill 93 blocks; 12 tokens are left over and stand in a block with the "
        "request's own words. So each request keeps 212 tokens for itself."
    ),
    hints=(
        "How many full blocks does the common part have?",
        "What is left over of it goes into a block that is not the same for all.",
        "Shared blocks once, and for each request the blocks of the left-over and its own tokens.",
    ),
    solution=(
        "shared = 1500 // 16\n"
        "own = -(-(1500 - 16 * shared + 200) // 16)\n"
        "answer = shared + 64 * own\n"
    ),
)

BILL = Exercise(
    id="07-c",
    title="The bill",
    statement=(
        "A prefix of 40,000 tokens is used 25 times within its time to live. The base price is $3 "
        "a million tokens, writing costs 1.25 times, reading 0.1 times the base. What do the 25 "
        "uses of the prefix cost, in dollars? Give two decimals or more."
    ),
    grade=checks_07.grade_bill,
    why="The first use writes, the other 24 read: 0.12 x (1.25 + 24 x 0.1) dollars.",
    hints=(
        "What does the prefix cost once, without a cache?",
        "The first use pays for the write. How many reads follow?",
        "0.12 x (1.25 + reads x 0.1).",
    ),
    solution="once = 40_000 / 1e6 * 3\nanswer = once * (1.25 + 24 * 0.1)\n",
)

EXERCISES = (HITS, CROWD, BILL)


def check_hit_tokens(answer: object) -> CheckResult:
    """Check 07-a: a function `hit_tokens(prompt, equal, block_size)`."""
    return check("07-a", answer)


def check_crowd(answer: object) -> CheckResult:
    """Check 07-b: a number of blocks.

    >>> check_crowd(93).grade.misconception
    'shared-alone'
    """
    return check("07-b", answer)


def check_bill(answer: object) -> CheckResult:
    """Check 07-c: dollars."""
    return check("07-c", answer)

"""The exercises of chapter 12: what an engine will report, find and show, said beforehand."""

from kvlab.course import checks_07, checks_12
from kvlab.course.exercises import CheckResult, Exercise, check

TOKENS = Exercise(
    id="12-a",
    title="Say the start-up line",
    statement=(
        "Write `reported_tokens(budget, layers, kv_heads, head_dim, element_bytes, block_size)`: "
        "the tokens that an engine reports for a cache of `budget` bytes on one rank. Roughly 2 "
        "lines."
    ),
    stub=(
        "def reported_tokens(budget, layers, kv_heads, head_dim, element_bytes, block_size):\n"
        "    ..."
    ),
    grade=checks_12.grade_tokens,
    why="Bytes of a token, whole blocks of them in the budget, and tokens again.",
    hints=(
        "How many bytes is one token, keys and values of all layers?",
        "How many whole blocks fit? Round down.",
        "The line says tokens: multiply by the tokens of a block.",
    ),
    solution=(
        "def reported_tokens(budget, layers, kv_heads, head_dim, element_bytes, block_size):\n"
        "    token_bytes = 2 * layers * kv_heads * head_dim * element_bytes\n"
        "    return budget // (token_bytes * block_size) * block_size\n"
    ),
)

HITS = Exercise(
    id="12-b",
    title="Say the hits",
    statement=(
        "Write `hits(prompt_tokens, equal_tokens, block_size)`: by how much the hit counter "
        "rises, in tokens, when a prompt arrives whose first `equal_tokens` tokens were served "
        "before. One token at least is always computed. Roughly 1 line."
    ),
    stub="def hits(prompt_tokens, equal_tokens, block_size):\n    ...",
    grade=checks_07.grade_hit,
    why="Whole blocks of what is equal, and never the whole prompt.",
    hints=(
        "A block is found by the hash of all its tokens: a block that is not full has none.",
        "What if the whole prompt was served before? How many tokens may be found at most?",
        "Round down to whole blocks, then count tokens.",
    ),
    solution=(
        "def hits(prompt_tokens, equal_tokens, block_size):\n"
        "    return min(equal_tokens, prompt_tokens - 1) // block_size * block_size\n"
    ),
)

MEAN = Exercise(
    id="12-c",
    title="Read two looks at a metrics page",
    statement=(
        "A histogram such as `time_to_first_token_seconds` is two numbers that only rise: "
        '`{"sum": seconds, "count": requests}`. Write `mean_wait(before, after)`: the mean of '
        "those that came between the two looks. Roughly 1 line."
    ),
    stub="def mean_wait(before, after):\n    ...",
    grade=checks_12.grade_mean,
    why="The increase of the sum over the increase of the count.",
    hints=(
        "Both numbers count from the engine's start. What happened in between?",
        "Subtract each, then divide.",
    ),
    solution=(
        "def mean_wait(before, after):\n"
        '    return (after["sum"] - before["sum"]) / (after["count"] - before["count"])\n'
    ),
)

EXERCISES = (TOKENS, HITS, MEAN)


def check_reported_tokens(answer: object) -> CheckResult:
    """Check 12-a: a function `reported_tokens(...)` of six numbers."""
    return check("12-a", answer)


def check_hits(answer: object) -> CheckResult:
    """Check 12-b: a function `hits(...)` of three numbers."""
    return check("12-b", answer)


def check_mean_wait(answer: object) -> CheckResult:
    """Check 12-c: a function `mean_wait(before, after)` of two dictionaries."""
    return check("12-c", answer)

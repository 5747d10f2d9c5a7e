"""What the checks of chapter 12 compare with: reference functions and known wrong ways."""

from kvlab.course.claim_math_12 import mean_between, pool_tokens
from kvlab.course.grading import Grade
from kvlab.course.guarded import WrongFunction, grade_function


def reported_tokens(
    budget: int, layers: int, kv_heads: int, head_dim: int, element_bytes: int, block_size: int
) -> int:
    """Return the tokens that an engine reports for `budget` bytes of cache.

    >>> reported_tokens(2**30, 30, 3, 64, 2, 128)
    46592
    """
    return pool_tokens(budget, 2 * layers * kv_heads * head_dim * element_bytes, block_size)


_TOKENS_WRONG = (
    WrongFunction(
        "no-blocks",
        lambda b, n, h, d, e, s: b // (2 * n * h * d * e),
        "That counts single tokens: an engine hands out whole blocks, and reports those.",
    ),
    WrongFunction(
        "factor-two",
        lambda b, n, h, d, e, s: b // (n * h * d * e * s) * s,
        "Keys and values are both stored: the factor 2 is missing.",
    ),
    WrongFunction(
        "one-layer",
        lambda b, n, h, d, e, s: b // (2 * h * d * e * s) * s,
        "That is one layer: every layer keeps its own keys and values.",
    ),
    WrongFunction(
        "blocks-not-tokens",
        lambda b, n, h, d, e, s: b // (2 * n * h * d * e * s),
        "Those are blocks. How many tokens are they?",
    ),
    WrongFunction(
        "rounded-up",
        lambda b, n, h, d, e, s: -(-b // (2 * n * h * d * e * s)) * s,
        "The last block was rounded up: the budget does not hold it.",
    ),
    WrongFunction(
        "two-bytes-always",
        lambda b, n, h, d, e, s: b // (4 * n * h * d * s) * s,
        "Two bytes are built in; `element_bytes` says how many a number takes.",
    ),
)
TOKENS_CASES = (
    (2**30, 30, 3, 64, 2, 128),
    (2**30, 30, 3, 64, 4, 128),
    (188_743_680, 30, 3, 64, 4, 32),
    (94_371_840, 30, 3, 64, 4, 32),
    (2**30, 30, 3, 64, 1, 128),
    (2**24, 4, 2, 32, 4, 32),
    (10**9, 32, 8, 128, 2, 16),
    (100, 32, 8, 128, 2, 16),
)


def grade_tokens(answer: object) -> Grade:
    """Grade exercise 12-a."""
    return grade_function(answer, reported_tokens, TOKENS_CASES, _TOKENS_WRONG)


def mean_wait(before: dict[str, float], after: dict[str, float]) -> float:
    """Return the mean of a histogram between two looks, each {"sum": seconds, "count": n}.

    >>> mean_wait({"sum": 1.0, "count": 2}, {"sum": 4.0, "count": 4})
    1.5
    """
    return mean_between(before["sum"], int(before["count"]), after["sum"], int(after["count"]))


_MEAN_WRONG = (
    WrongFunction(
        "since-the-start",
        lambda b, a: a["sum"] / a["count"],
        "That is the mean since the engine started: subtract what was there before.",
    ),
    WrongFunction(
        "count-not-subtracted",
        lambda b, a: (a["sum"] - b["sum"]) / a["count"],
        "The seconds are those in between, the requests all since the start.",
    ),
    WrongFunction(
        "difference-of-means",
        lambda b, a: a["sum"] / a["count"] - b["sum"] / b["count"],
        "The difference of two means is no mean: divide the increases.",
    ),
    WrongFunction(
        "sum-only",
        lambda b, a: a["sum"] - b["sum"],
        "Those are the seconds of all requests together.",
    ),
)
MEAN_CASES = (
    ({"sum": 1.0, "count": 2}, {"sum": 4.0, "count": 4}),
    ({"sum": 120.0, "count": 400}, {"sum": 150.0, "count": 500}),
    ({"sum": 10.0, "count": 100}, {"sum": 90.0, "count": 110}),
    ({"sum": 0.5, "count": 1}, {"sum": 0.75, "count": 2}),
)


def grade_mean(answer: object) -> Grade:
    """Grade exercise 12-c."""
    return grade_function(answer, mean_wait, MEAN_CASES, _MEAN_WRONG)

"""What the checks of chapter 04 compare with: reference functions and known wrong ways."""

from kvlab.course.claim_math_04 import (
    batch_that_moves_more_cache,
    batch_without_embedding,
    cached_tokens_that_equal_weights,
    step_milliseconds,
)
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function

PEAK, BANDWIDTH = 989e12, 3.35e12


def step_seconds(batch: int, flops: float, weight_bytes: float, cache_bytes: float) -> float:
    """Return the least time of one decode step on an H100.

    `flops` and `cache_bytes` are those of one request; the weights serve the whole batch.

    >>> round(1000 * step_seconds(16, 2e10, 16e9, 1e9), 2)
    9.55
    """
    reading = (weight_bytes + batch * cache_bytes) / BANDWIDTH
    return max(batch * flops / PEAK, reading)


_STEP_WRONG = (
    WrongFunction(
        "added",
        lambda batch, flops, weight_bytes, cache_bytes: (
            batch * flops / PEAK + (weight_bytes + batch * cache_bytes) / BANDWIDTH
        ),
        "The two were added; arithmetic and reading overlap, so the longer one counts.",
    ),
    WrongFunction(
        "weights-for-each",
        lambda batch, flops, weight_bytes, cache_bytes: max(
            batch * flops / PEAK, batch * (weight_bytes + cache_bytes) / BANDWIDTH
        ),
        "The weights were read once for each request; one reading serves the whole batch.",
    ),
    WrongFunction(
        "cache-once",
        lambda batch, flops, weight_bytes, cache_bytes: max(
            batch * flops / PEAK, (weight_bytes + cache_bytes) / BANDWIDTH
        ),
        "The cache was read once for the batch; each request reads its own.",
    ),
    WrongFunction(
        "reading-alone",
        lambda batch, flops, weight_bytes, cache_bytes: (
            (weight_bytes + batch * cache_bytes) / BANDWIDTH
        ),
        "Right as long as memory binds; one of the inputs tried waits for arithmetic.",
    ),
    WrongFunction(
        "one-request",
        lambda batch, flops, weight_bytes, cache_bytes: max(
            flops / PEAK, (weight_bytes + batch * cache_bytes) / BANDWIDTH
        ),
        "The FLOPs are those of one request; the step does them for the whole batch.",
    ),
    WrongFunction(
        "milliseconds",
        lambda *given: 1000 * step_seconds(*given),
        "A thousand times too much: that is in milliseconds, seconds are asked for.",
    ),
    WrongFunction(
        "shorter",
        lambda batch, flops, weight_bytes, cache_bytes: min(
            batch * flops / PEAK, (weight_bytes + batch * cache_bytes) / BANDWIDTH
        ),
        "The shorter of the two was taken; the step is done when the longer one is.",
    ),
)
_STEP_CASES = [
    (1, 2e10, 16e9, 1e9),
    (16, 2e10, 16e9, 1e9),
    (2000, 2e10, 16e9, 1e6),
    (4, 1e14, 16e9, 1e6),
]


def grade_step(answer: object) -> Grade:
    """Grade exercise 04-a."""
    return grade_function(answer, step_seconds, _STEP_CASES, _STEP_WRONG)


_NO_EMBEDDING = (
    "A fair thought: a step reads one row of the input embedding for each sequence, and you left "
    "that table out. The convention here counts all weights."
)
_NOT_WHOLE = "There both are equal. A batch is a whole number: take the next one."
_TEN_TIMES = "Ten times too many: a power of ten slipped in."


def grade_crossing(answer: object) -> Grade:
    """Grade exercise 04-b."""
    model, context = "llama-3.1-8b", 4096
    right = batch_that_moves_more_cache(model, context)
    without = batch_without_embedding(model, context)
    quotient = cached_tokens_that_equal_weights(model) / context
    known = (
        ("embedding-left-out", without, _NO_EMBEDDING),
        *(("not-whole", round(quotient, n), _NOT_WHOLE) for n in range(1, 9)),
        ("ten-times", 10 * right, _TEN_TIMES),
        ("ten-times", int(10 * quotient), _TEN_TIMES),
        ("still-weights", right - 1, "One too few: there the weights are still more."),
        ("keys-only", 60, "Keys and values are both read: the factor 2 was forgotten."),
        ("query-heads", 8, "Query heads were counted; the cache holds KV heads."),
        ("one-layer", 958, "That is the cache of one layer; the model has 32."),
        ("weights-in-numbers", 15, "A weight of bf16 is 2 bytes; that counted the weights once."),
    )
    slips = tuple(Misconception(*row) for row in known)
    words = ("requests", "request", "sequences")
    return grade_number(
        answer, Target(right, unit="", words=words, exact=True, misconceptions=slips)
    )


def grade_step_time(answer: object) -> Grade:
    """Grade exercise 04-c."""
    right = step_milliseconds("llama-3.1-70b", "H100", 8, 8192, 32)
    weights, cache = 17.640734720 / 3.35, 10 * 2**30 / 3.35e9
    known = (
        ("cache-forgotten", weights, "That reads the weights alone; add each sequence's cache."),
        ("cache-once", weights + cache / 32, "Each sequence reads its own cache; there are 32."),
        ("cache-not-split", weights + 8 * cache, "A rank reads only its own KV head: an eighth."),
        ("one-card", 8 * (weights + cache), "That is all on one card; eight read at once."),
        ("gib-as-gb", weights + 10 / 3.35, "10 GiB were taken as 10 GB; they are 10.74 GB."),
        ("weights-forgotten", cache, "That reads the caches alone; the weights come on top."),
    )
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="ms", misconceptions=slips))

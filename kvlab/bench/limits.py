"""What the hardware allows, from rates measured in the same run: pure arithmetic.

Left out: launch times, norms, softmax. So a limit can only be too good, never too bad.
"""

from __future__ import annotations

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.plan_checks import positive


def seconds_to_read(num_bytes: float, bytes_per_second: float) -> float:
    """Return the least seconds in which so many bytes are read.

    >>> seconds_to_read(538e6, 20e9)
    0.0269
    """
    return num_bytes / positive("bytes_per_second", bytes_per_second)


def roofline_seconds(
    flops: float, num_bytes: float, *, flops_per_second: float, bytes_per_second: float
) -> float:
    """Return the longer of the time to compute and the time to read.

    >>> roofline_seconds(1e9, 1e9, flops_per_second=1e11, bytes_per_second=1e10)
    0.1
    """
    compute = flops / positive("flops_per_second", flops_per_second)
    return max(compute, seconds_to_read(num_bytes, bytes_per_second))


def mean_context(prompt_tokens: int, new_tokens: int) -> float:
    """Return the tokens that a decode step reads from the cache, on average over all steps.

    The prefill emits the first token, so there are `new_tokens` - 1 steps; the first reads the
    prompt and the token fed, the last all but the one emitted then.

    >>> mean_context(512, 128)
    576.0
    """
    prompt = whole_number("prompt_tokens", prompt_tokens)
    steps = whole_number("new_tokens", new_tokens, minimum=2) - 1
    return prompt + (steps + 1) / 2


def decode_bytes(
    weight_bytes: int, cache_bytes_per_token: float, *, prompt_tokens: int, new_tokens: int
) -> float:
    """Return the bytes that a decode step reads on average: all weights once, and the cache.

    >>> decode_bytes(1000, 10, prompt_tokens=512, new_tokens=128)
    6760.0
    """
    return weight_bytes + cache_bytes_per_token * mean_context(prompt_tokens, new_tokens)


def slope(xs: list[float], ys: list[float]) -> float:
    """Return the exponent of y = c x^e that fits best: the slope in a log-log plot.

    1 is linear, 2 quadratic, 0 no growth at all.

    >>> round(slope([1, 10, 100], [3, 30, 300]), 6), round(slope([1, 2, 4], [1, 4, 16]), 6)
    (1.0, 2.0)
    """
    from math import log
    from statistics import linear_regression

    return linear_regression([log(x) for x in xs], [log(y) for y in ys]).slope

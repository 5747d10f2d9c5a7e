"""What single claims need beyond the formulas of `kvlab.arithmetic`: ratios, growth, shares.

P is the number of prompt tokens, N the number of emitted tokens.
"""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flop_steps import forward_flops
from kvlab.arithmetic.flops import (
    count_flops,
    flops_cached,
    flops_uncached,
    token_forwards_cached,
    token_forwards_uncached,
    triangle,
)


def work_ratio(P: int, N: int) -> float:
    """Return uncached over cached token-forwards.

    >>> round(work_ratio(2000, 1000), 1)
    833.4
    """
    return token_forwards_uncached(P, N) / token_forwards_cached(P, N)


def redundant_token_forwards(P: int, N: int) -> int:
    """Return the token-forwards that a cache saves."""
    return token_forwards_uncached(P, N) - token_forwards_cached(P, N)


def redundant_percent(P: int, N: int) -> float:
    """Return the share of the uncached token-forwards that a cache saves, in percent."""
    return 100 * redundant_token_forwards(P, N) / token_forwards_uncached(P, N)


def growth_when_answer_doubles(P: int, N: int) -> float:
    """Return uncached token-forwards for 2N over those for N.

    >>> round(growth_when_answer_doubles(2000, 1000), 2)
    2.4
    """
    return token_forwards_uncached(P, 2 * N) / token_forwards_uncached(P, N)


def answer_length_for_growth(P: int, growth: float) -> int:
    """Return the shortest answer whose doubling multiplies the uncached work by `growth` or more.

    >>> answer_length_for_growth(2000, 3.9)
    75981
    """
    low, high = 1, 2
    while growth_when_answer_doubles(P, high) < growth:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        reached = growth_when_answer_doubles(P, middle) >= growth
        low, high = (low, middle) if reached else (middle + 1, high)
    return low


def uncached_pass_lengths(P: int, N: int) -> list[int]:
    """Return the tokens of the first and of the last pass without a cache."""
    each = [token_forwards_uncached(P + step, 1) for step in (0, N - 1)]
    return each


def flops_ratio(model: str, P: int, N: int) -> float:
    """Return uncached over cached FLOPs of a whole generation."""
    shape = model_shape(model)
    return flops_uncached(shape, P, N).total / flops_cached(shape, P, N).total


def attention_equals_linear_at(model: str) -> list[float]:
    """Return the positions where attention costs as much as projections and MLP.

    First for one decoded token, then for the mean over a whole causal prefill.
    """
    one = count_flops(model_shape(model), tokens=1, pairs=1, head_positions=0)
    crossing = one.linear / one.attention
    return [crossing, 2 * crossing - 1]


def decode_crossing(model: str) -> float:
    """Return the position where one decoded token's attention equals its linear layers."""
    return attention_equals_linear_at(model)[0]


def attention_over_linear(model: str, position: int) -> float:
    """Return attention over linear FLOPs for the one token decoded at a 1-based position."""
    step = forward_flops(model_shape(model), q_len=1, cached_tokens=position - 1)
    return step.attention / step.linear


def cached_attention_growth(model: str, positions: int) -> float:
    """Return how a cached run's attention FLOPs grow when its length doubles."""
    shape = model_shape(model)
    runs = [flops_cached(shape, 1, length).attention for length in (2 * positions, positions)]
    return runs[0] / runs[1]


def key_value_products(tokens: int, layers: int) -> list[int]:
    """Count the key and value projections of one uncached step over all layers.

    Token-layer pairs; vector-matrix products (a key and a value each); matrix products when a
    layer's tokens are batched; and the vector products that a cache saves.
    """
    pairs = tokens * layers
    return [pairs, 2 * pairs, 2 * layers, 2 * layers * (tokens - 1)]


def growth_by_part(N: int) -> list[float]:
    """Return growth when N doubles (P = 1): attention uncached, cached, linear uncached, cached."""

    def uncached_pairs(n: int) -> int:
        return sum(triangle(length) for length in range(1, n + 1))

    counts = (
        uncached_pairs,
        triangle,
        lambda n: token_forwards_uncached(1, n),
        lambda n: token_forwards_cached(1, n),
    )
    return [count(2 * N) / count(N) for count in counts]


def visible_keys(position: int) -> int:
    """Return how many keys the query at a 1-based position may see: itself and all before."""
    return position


ALL: tuple[Callable[..., Any], ...] = (
    work_ratio,
    redundant_token_forwards,
    redundant_percent,
    growth_when_answer_doubles,
    answer_length_for_growth,
    uncached_pass_lengths,
    flops_ratio,
    attention_equals_linear_at,
    decode_crossing,
    attention_over_linear,
    cached_attention_growth,
    key_value_products,
    growth_by_part,
    visible_keys,
)

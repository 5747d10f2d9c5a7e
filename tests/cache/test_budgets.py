"""A budget shared out over layers or heads sums to what was given, to the token."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_llama import random_ids, tiny_llama

from kvlab.cache import KVCache
from kvlab.cache.budgets import pyramid_budgets, split_budget
from kvlab.cache.eviction_scores import SinksLayer
from kvlab.errors import InvalidArgument


@given(
    shares=st.lists(st.floats(0, 100), min_size=1, max_size=12).filter(lambda s: sum(s) > 1e-3),
    spare=st.integers(0, 500),
    minimum=st.integers(1, 9),
)
@settings(max_examples=200, deadline=None)
def test_parts_sum_to_the_whole_keep_the_order_and_the_minimum(
    shares: list[float], spare: int, minimum: int
) -> None:
    total = minimum * len(shares) + spare
    budgets = split_budget(total, shares, minimum=minimum)
    assert sum(budgets) == total
    assert min(budgets) >= minimum
    for a, one in zip(shares, budgets, strict=True):
        assert all(one <= other + 1 for b, other in zip(shares, budgets, strict=True) if a <= b)


def test_exact_shares_are_exact() -> None:
    assert split_budget(100, [5, 3, 2]) == [50, 30, 20]
    assert split_budget(7, [1, 1, 1]) == [3, 2, 2]
    assert split_budget(3, [9, 0, 0]) == [1, 1, 1]


def test_a_pyramid_falls_and_keeps_the_mean() -> None:
    budgets = pyramid_budgets(64, 30, first_over_last=5.0)
    assert sum(budgets) == 64 * 30
    assert budgets == sorted(budgets, reverse=True)
    assert budgets[0] / budgets[-1] == pytest.approx(5.0, rel=0.05)
    assert pyramid_budgets(64, 30, first_over_last=1.0) == [64] * 30
    assert pyramid_budgets(64, 1) == [64]


def test_a_pyramid_of_layers_holds_the_bytes_of_the_even_split() -> None:
    model, ids = tiny_llama(), random_ids(1, 30)
    even = KVCache(SinksLayer(12) for _ in range(3))
    pyramid = KVCache(SinksLayer(budget) for budget in pyramid_budgets(12, 3))
    for cache in (even, pyramid):
        model(ids, cache=cache)
    assert [layer.num_kept() for layer in pyramid.layers] == [18, 12, 6]
    assert pyramid.nbytes == even.nbytes


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: split_budget(5, [1, 1], minimum=3), "total=5: must be at least 6"),
        (lambda: split_budget(0, [1]), "total=0"),
        (lambda: split_budget(5, []), "shares"),
        (lambda: split_budget(5, [1, -1]), "shares"),
        (lambda: split_budget(5, [0, 0]), "shares"),
        (lambda: split_budget(5, [1, float("nan")]), "shares"),
        (lambda: split_budget(5, [1], minimum=0), "minimum=0"),
        (lambda: pyramid_budgets(0, 3), "average=0"),
        (lambda: pyramid_budgets(5, 0), "num_layers=0"),
        (lambda: pyramid_budgets(5, 3, first_over_last=0.5), "first_over_last=0.5"),
    ],
)
def test_shares_that_cannot_be_split_are_named(call: Any, named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert named in str(caught.value)

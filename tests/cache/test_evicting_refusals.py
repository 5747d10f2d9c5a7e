"""What an evicting layer cannot do right it refuses in one sentence, before anything is stored."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from masked_llama import random_ids, tiny_llama
from torch import Tensor

from kvlab.cache import KVCache
from kvlab.cache.eviction_observed import ExpectedLayer, HeavyHitterLayer
from kvlab.cache.eviction_scores import (
    KeyDiffLayer,
    KeyNormLayer,
    RandomLayer,
    SinksLayer,
    WindowLayer,
)
from kvlab.cache.per_head import PerHeadLayer
from kvlab.errors import InvalidArgument, Unsupported

RULES = [
    WindowLayer,
    SinksLayer,
    RandomLayer,
    KeyNormLayer,
    KeyDiffLayer,
    HeavyHitterLayer,
    ExpectedLayer,
]


@pytest.mark.parametrize("budget", [0, -1, 2.5, None, True])
@pytest.mark.parametrize("rule", RULES)
def test_a_budget_that_is_no_number_of_tokens_is_named(rule: Any, budget: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        rule(budget=budget)
    assert str(caught.value).startswith(f"budget={budget!r}: must be a whole number of 1 or more")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SinksLayer(3), "budget=3: must be at least 4: 4 sink tokens + 0 recent"),
        (lambda: SinksLayer(3, num_sink_tokens=-1), "num_sink_tokens=-1: must be a whole"),
        (lambda: HeavyHitterLayer(8, recent=6, num_sink_tokens=3), "must be at least 9: 3 sink"),
        (lambda: HeavyHitterLayer(8, recent=9), "budget=8: must be at least 9"),
        (lambda: KeyNormLayer(8, recent=-1), "recent=-1: must be a whole number of 0 or more"),
        (lambda: RandomLayer(8, seed=-1), "seed=-1: must be a whole number of 0 or more"),
        (lambda: RandomLayer(8, seed=1.5), "seed=1.5: must be a whole number"),
        (lambda: PerHeadLayer([]), "heads=[]: must be one evicting layer for each KV head"),
    ],
)
def test_options_that_do_not_fit_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_budget_equal_to_its_sinks_is_allowed() -> None:
    layer, states = SinksLayer(4), torch.zeros(1, 1, 9, 8)
    layer.update(states, states)
    assert layer.kept_positions()[0, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("first", [True, False], ids=["first update", "later update"])
def test_nan_keys_are_refused_by_name_and_nothing_is_stored(rule: Any, first: bool) -> None:
    layer, states = rule(budget=4), torch.zeros(1, 2, 3, 8)
    if not first:
        layer.update(states, states)
    broken = states.clone()
    broken[0, 1, 2, 5] = float("nan")
    with pytest.raises(InvalidArgument, match=r"key_states=nan: .* NaN has no rank"):
        layer.update(broken, states)
    assert layer.get_seq_length() == (0 if first else 3)


def test_nan_keys_of_one_head_leave_the_other_heads_alone() -> None:
    layer = PerHeadLayer([WindowLayer(2), WindowLayer(3)])
    states = torch.zeros(1, 2, 3, 8)
    broken = states.clone()
    broken[0, 1] = float("nan")
    with pytest.raises(InvalidArgument, match="NaN has no rank"):
        layer.update(broken, states)
    assert [head.get_seq_length() for head in layer.heads] == [0, 0]


def test_heads_must_be_as_many_as_the_model_has() -> None:
    layer, states = PerHeadLayer([WindowLayer(2)]), torch.zeros(1, 2, 3, 8)
    with pytest.raises(InvalidArgument, match="must be 2 layers, one for each KV head"):
        layer.update(states, states)


def padded(length: int) -> Tensor:
    mask = torch.ones(2, length, dtype=torch.long)
    mask[1, :2] = 0
    return mask


@pytest.mark.parametrize("rule", [*RULES, None])
def test_padding_is_refused_before_the_first_token_goes(rule: Any) -> None:
    model, ids = tiny_llama(), random_ids(2, 6)
    make = lambda: PerHeadLayer([WindowLayer(8), WindowLayer(9)]) if rule is None else rule(8)  # noqa: E731
    cache = KVCache(make() for _ in range(3))
    with pytest.raises(Unsupported, match="attention_mask: a padded batch cannot use a cache that"):
        model(ids, cache=cache, attention_mask=padded(6))
    assert cache.get_seq_length() == 0
    all_ones = torch.ones_like(ids)  # no padding: nothing to refuse
    torch.testing.assert_close(model(ids, cache=cache, attention_mask=all_ones), model(ids))


@pytest.mark.parametrize("rule", [HeavyHitterLayer, ExpectedLayer])
def test_a_layer_that_must_look_on_refuses_to_go_on_unshown(rule: Any) -> None:
    layer, states = rule(4), torch.zeros(1, 2, 3, 8)
    layer.update(states, states)
    with pytest.raises(Unsupported, match="only kvlab's Llama lets it; nothing was shown to it"):
        layer.update(states, states)
    assert layer.get_seq_length() == 3

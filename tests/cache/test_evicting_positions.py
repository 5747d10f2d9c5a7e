"""Seen, kept and next position are three numbers; keys keep their places or are turned to new."""

from typing import Any

import pytest
import torch
from feeding import feed
from masked_llama import random_ids, tiny_llama
from torch import Tensor

from kvlab.cache import KVCache
from kvlab.cache.evicting import EvictingLayer
from kvlab.cache.eviction_scores import KeyNormLayer, RandomLayer, SinksLayer, WindowLayer
from kvlab.cache.per_head import PerHeadLayer
from kvlab.cache.repositioned import turn
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.llama import Llama
from kvlab.model.rope import rotate


@pytest.fixture(scope="module")
def model() -> Llama:
    """Three layers."""
    return tiny_llama()


def options(model: Llama, positions: str) -> dict[str, Any]:
    return {"positions": positions, "inv_freq": model.rope.inv_freq}


def close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


def rotated(model: Llama, keys: Tensor, positions: list[int]) -> Tensor:
    """Turn keys that stand at 0 to these positions."""
    return rotate(keys, *model.rope.cos_sin(torch.tensor([positions]), keys.dtype))


class WithoutTwoAndFive(EvictingLayer):
    """Drops tokens 2 and 5 first."""

    def score(self) -> Tensor:
        """Low for the two."""
        return -((self.slots == 2) | (self.slots == 5)).float()


def test_e01_kept_angles_equal_a_masked_run_and_turned_ones_a_run_over_the_survivors() -> None:
    model, ids = tiny_llama(num_hidden_layers=1), random_ids(1, 9)
    survivors = [0, 1, 3, 4, 6, 7]
    kept = KVCache([WithoutTwoAndFive(6)])
    turned = KVCache([WithoutTwoAndFive(6, **options(model, "rerotated"))])
    for cache in (kept, turned):
        model(ids[:, :8], cache=cache)
        assert cache.layers[0].kept_positions()[0, 0].tolist() == survivors
    chosen = ids[:, [*survivors, 8]]
    true_places = torch.tensor([[*survivors, 8]])
    expected = model(chosen, position_ids=true_places)[:, -1:]  # one layer: keys know no others
    close(model(ids[:, 8:], cache=kept), expected)
    again = model(chosen)[:, -1:]  # the same tokens, encoded anew at 0 to 6
    close(model(ids[:, 8:], cache=turned), again)
    assert (expected - again).abs().max() > 1e-3


@pytest.mark.parametrize(("positions", "next_position"), [("kept", 10), ("rerotated", 6)])
def test_e02_seen_kept_and_next_position_are_three_numbers(
    model: Llama, positions: str, next_position: int
) -> None:
    layers = [SinksLayer(6, num_sink_tokens=2, **options(model, positions)) for _ in range(3)]
    cache = KVCache(layers)
    feed(model, list(random_ids(1, 10).split([7, 1, 2], dim=1)), cache)
    assert cache.get_seq_length() == 10
    assert [layer.num_kept() for layer in layers] == [6, 6, 6]
    assert cache.get_next_position() == next_position


def visible_places(
    model: Llama, layer: EvictingLayer, plain: Tensor, next_key: Tensor
) -> list[int]:
    """Return at which places `update` returns its keys; the new one is turned as a model would."""
    new = rotated(model, next_key, [layer.get_next_position()])
    keys, _ = layer.update(new, new)
    places = []
    for at_zero, key in zip(torch.cat([plain, next_key[0, 0]]), keys[0, 0], strict=True):
        tried = rotated(model, at_zero.expand(1, 1, 64, -1), list(range(64)))[0, 0]
        places.append(int((tried - key).norm(dim=-1).argmin()))
        close(tried[places[-1]], key)
    return places


@pytest.mark.parametrize(
    ("positions", "expected"),
    [("kept", [0, 1, 2, 3, 6, 7, 8, 9]), ("rerotated", list(range(8)))],
)
def test_e03_places_after_eviction_are_the_true_ones_or_follow_one_another(
    model: Llama, positions: str, expected: list[int]
) -> None:
    layer = SinksLayer(7, num_sink_tokens=4, **options(model, positions))
    plain = torch.randn(1, 1, 60, 8, generator=torch.Generator().manual_seed(2))
    for position in range(9):
        new = rotated(model, plain[:, :, position : position + 1], [layer.get_next_position()])
        layer.update(new, new)
    held = layer.kept_positions()[0, 0].tolist()
    assert held == [0, 1, 2, 3, 6, 7, 8]
    for step in range(9, 59):  # 50 steps: they stay so
        places = visible_places(model, layer, plain[0, 0, held], plain[:, :, step : step + 1])
        if positions == "rerotated":
            assert places == list(range(8))
        else:
            assert places == [0, 1, 2, 3, step - 3, step - 2, step - 1, step]
        assert step > 9 or places == expected
        held = layer.kept_positions()[0, 0].tolist()


@pytest.mark.parametrize("positions", ["kept", "rerotated"])
def test_e06_a_first_prompt_longer_than_the_budget_is_trimmed(model: Llama, positions: str) -> None:
    layer = SinksLayer(4, num_sink_tokens=1, **options(model, positions))
    plain = torch.randn(1, 1, 11, 8, generator=torch.Generator().manual_seed(2))
    prompt = rotated(model, plain[:, :, :10], list(range(10)))
    assert layer.update(prompt, prompt)[0].shape[2] == 10  # the prompt sees itself whole
    assert layer.kept_positions()[0, 0].tolist() == [0, 7, 8, 9]
    places = visible_places(model, layer, plain[0, 0, [0, 7, 8, 9]], plain[:, :, 10:])
    assert places == ([0, 7, 8, 9, 10] if positions == "kept" else [0, 1, 2, 3, 4])


def test_k18_the_next_position_is_not_the_number_kept(model: Llama) -> None:
    ids, cache = random_ids(1, 21), KVCache(WindowLayer(8) for _ in range(3))
    model(ids[:, :20], cache=cache)
    assert (cache.get_seq_length(), cache.get_next_position()) == (20, 20)
    assert [layer.num_kept() for layer in cache.layers] == [8, 8, 8]
    right, twin = model(ids[:, 20:], cache=cache.clone()), cache.clone()
    wrong = model(ids[:, 20:], cache=twin, position_ids=torch.tensor([[8]]))
    assert (right - wrong).abs().max() > 1e-3  # no error, another answer


def test_turning_on_the_way_out_gathers_no_rounding(model: Llama) -> None:
    layer = SinksLayer(6, num_sink_tokens=2, **options(model, "rerotated"))
    states = torch.randn(1, 2, 300, 8).to(torch.bfloat16)
    for place in range(300):
        keys, _ = layer.update(states[:, :, place : place + 1], states[:, :, place : place + 1])
    assert torch.equal(layer.keys[:, :, :2], states[:, :, :2])  # as they came, bit for bit
    assert torch.equal(keys[:, :, :2], states[:, :, :2])  # sinks never moved


def test_the_turn_of_a_key_is_the_models_own(model: Llama) -> None:
    keys = torch.randn(1, 2, 5, 8)
    there = rotated(model, keys, [3, 9, 4, 50, 7])
    back = turn(there, torch.tensor([[[-3, -9, -4, -50, -7]]]), model.rope.inv_freq)
    close(back, keys)


def test_streaming_goes_on_past_the_positions_of_the_model() -> None:
    model = tiny_llama(max_position_embeddings=16)
    layers = [SinksLayer(8, num_sink_tokens=2, **options(model, "rerotated")) for _ in range(3)]
    cache, ids = KVCache(layers), random_ids(1, 40)
    logits = feed(model, list(ids.split([10, *[1] * 30], dim=1)), cache)
    assert torch.isfinite(logits).all()
    assert (cache.get_seq_length(), cache.get_next_position()) == (40, 8)
    with pytest.raises(InvalidArgument, match="16 positions"):
        feed(model, list(ids.split(1, dim=1)), KVCache(SinksLayer(8) for _ in range(3)))


def test_layers_of_different_budgets_have_no_common_next_position(model: Llama) -> None:
    layers = [SinksLayer(b, **options(model, "rerotated")) for b in (6, 6, 8)]
    cache = KVCache(layers)
    model(random_ids(1, 10), cache=cache)
    with pytest.raises(Unsupported, match="layers keep \\[6, 8\\] tokens"):
        model(random_ids(1, 1), cache=cache)
    with pytest.raises(Unsupported, match="KV heads of one layer share"):
        PerHeadLayer([KeyNormLayer(4, **options(model, "rerotated"))])


@pytest.mark.parametrize("rule", [SinksLayer, KeyNormLayer, RandomLayer])
def test_a_budget_of_all_tokens_turns_nothing(model: Llama, rule: Any) -> None:
    ids = random_ids(2, 12)
    cache = KVCache(rule(12, **options(model, "rerotated")) for _ in range(3))
    close(feed(model, list(ids.split([5, 1, 6], dim=1)), cache), model(ids))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_q09_packed_keys_are_not_turned_but_refused(model: Llama, dtype: torch.dtype) -> None:
    layer = WithoutTwoAndFive(6, **options(model, "rerotated"))
    packed = torch.zeros(1, 2, 8, 8).to(dtype)
    with pytest.raises(InvalidArgument, match="packed keys can't be re-rotated"):
        layer.update(packed, packed)
    assert layer.get_seq_length() == 0


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"positions": "moved"}, "positions='moved'"),
        ({"positions": "rerotated"}, "inv_freq=None"),
        ({"positions": "rerotated", "inv_freq": torch.ones(2, 2)}, "inv_freq"),
    ],
)
def test_positions_that_cannot_be_computed_are_refused_by_name(
    given: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidArgument, match=named):
        WindowLayer(4, **given)


def test_a_rope_of_another_head_dim_is_refused_by_name() -> None:
    layer, states = WindowLayer(4, positions="rerotated", inv_freq=torch.ones(3)), torch.zeros(1)
    with pytest.raises(InvalidArgument, match="head_dim / 2 = 4"):
        layer.update(states.expand(1, 1, 2, 8), states.expand(1, 1, 2, 8))
    assert layer.get_seq_length() == 0

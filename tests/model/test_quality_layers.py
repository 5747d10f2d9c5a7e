"""Errors of single layers: each with exact input, compared with the layer class fed by hand."""

import pytest
import torch

from kvlab.cache import QuantizedLayer, make_cache
from kvlab.model.load import load_model
from kvlab.model.quality import Bench
from kvlab.model.quality_layers import layer_errors

TINY = load_model("tiny", device="cpu")
BENCH = Bench(TINY, tokens=96, facts=8, num_sequences=2)


@pytest.mark.parametrize("name", ["growing", "preallocated", "offloaded"])
def test_an_exact_cache_has_no_error(name: str) -> None:
    for error in layer_errors(BENCH, name):
        assert (error.keys, error.values, error.attention) == (0.0, 0.0, 0.0)


@torch.no_grad()
def test_keys_and_values_are_off_as_when_the_layer_is_fed_by_hand() -> None:
    task, exact = BENCH.task, make_cache("growing", num_layers=2)
    TINY.model(task.input_ids, cache=exact)
    found = layer_errors(BENCH, "int4", residual_length=0)
    for stored, error in zip(exact.layers, found, strict=True):
        whole, by_hand = stored.held(), QuantizedLayer(format="int4", residual_length=0)
        pieces = [states.split([task.context_len, *[1] * task.steps], 2) for states in whole]
        for new in zip(*pieces, strict=True):
            seen = by_hand.update(*new)
        expected = [float((x - y).norm() / y.norm()) for x, y in zip(seen, whole, strict=True)]
        assert all(0.01 < share < 0.5 for share in expected)
        assert [error.keys, error.values] == pytest.approx(expected, rel=1e-3)


@torch.no_grad()
def test_the_first_layer_is_off_as_much_as_in_a_run_with_the_cache_alone() -> None:
    outputs: list[list[torch.Tensor]] = [[], []]
    caches = [make_cache("growing", num_layers=2)]
    caches += [make_cache("int2", num_layers=2, residual_length=0)]
    for kept, cache in zip(outputs, caches, strict=True):
        hook = TINY.model.model.layers[0].self_attn.register_forward_hook(
            lambda _, __, output, kept=kept: kept.append(output)
        )
        for piece in BENCH.task.input_ids.split([BENCH.task.context_len, *[1] * 24], 1):
            TINY.model(piece, cache=cache)
        hook.remove()
    exact, lossy = (torch.cat(kept[1:], 1).double() for kept in outputs)  # without the context
    expected = float((lossy - exact).norm() / exact.norm())
    assert expected > 0.01
    found = layer_errors(BENCH, "int2", residual_length=0)[0].attention
    assert found == pytest.approx(expected, rel=1e-4)


def test_fewer_bits_are_further_off_in_every_layer() -> None:
    eight, four, two = (
        layer_errors(BENCH, name, residual_length=0) for name in ("int8", "int4", "int2")
    )
    for one, other, third in zip(eight, four, two, strict=True):
        assert one.keys < other.keys < third.keys
        assert one.values < other.values < third.values
        assert one.attention < other.attention < third.attention


@pytest.mark.parametrize("name", ["window", "h2o", "expected", "random"])
def test_a_cache_that_drops_tokens_has_only_its_attention_compared(name: str) -> None:
    for error in layer_errors(BENCH, name, budget="50%"):
        assert (error.keys, error.values) == (None, None)
        assert error.attention > 0


@pytest.mark.parametrize("name", ["window", "sinks", "keynorm", "random"])
def test_rerotated_keys_that_were_all_kept_are_no_error(name: str) -> None:
    for error in layer_errors(BENCH, name, budget="100%", positions="rerotated"):
        assert error.attention < 1e-6


def test_the_model_is_left_as_it_was() -> None:
    before = TINY.model(BENCH.task.input_ids)
    layer_errors(BENCH, "int2")
    with pytest.raises(ZeroDivisionError):
        layer_errors(BENCH, "int2", watch=lambda: 1 // 0)
    assert all(not block.self_attn._forward_hooks for block in TINY.model.model.layers)
    assert torch.equal(TINY.model(BENCH.task.input_ids), before)

"""Caches that drop tokens, or keep different numbers of them in different layers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from feeding import feed
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from kvlab.model.llama import Llama

MakePair = Callable[..., Any]
MakeLlama = Callable[..., Llama]
VOCAB_SIZE = 61


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    """Keep no graph."""
    with torch.no_grad():
        yield


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


def two_windows() -> DynamicCache:
    """A cache whose layer 0 keeps the last 3 tokens besides the new one; layer 1 keeps all."""
    cache = DynamicCache()
    cache.layers = [DynamicSlidingWindowLayer(sliding_window=4), DynamicLayer()]
    return cache


class WindowedReference(DynamicCache):
    """Keeps everything, and shows layer 0 only the last 4 keys."""

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, **_: Any) -> Any:
        key, value = super().update(key_states, value_states, layer_idx)
        return (key[:, :, -4:], value[:, :, -4:]) if layer_idx == 0 else (key, value)

    def get_mask_sizes(self, q_len: int, layer_idx: int) -> tuple[int, int]:
        kv_len, _ = super().get_mask_sizes(q_len, layer_idx)
        return (min(kv_len, 4), max(kv_len - 4, 0)) if layer_idx == 0 else (kv_len, 0)


def test_layers_may_keep_different_numbers_of_keys(make_llama: MakeLlama) -> None:
    model, input_ids = make_llama(), torch.randint(0, VOCAB_SIZE, (1, 10))
    one_by_one = list(input_ids.split(1, dim=1))
    cache = two_windows()
    windowed = feed(model, one_by_one, cache)
    assert_close(windowed, feed(model, one_by_one, WindowedReference()))
    assert (windowed - model(input_ids))[:, 4:].abs().max() > 1e-2  # the window does bite
    assert [layer.keys.shape[2] for layer in cache.layers] == [3, 10]
    chunk = model(input_ids[:, :4], cache=cache)  # layers of 7 and 14 keys, masked one by one
    assert torch.isfinite(chunk).all()
    assert cache.get_seq_length() == 14


class WithoutTheFirstTwo(DynamicCache):
    """Drops the first two tokens it holds, and still counts them as seen."""

    def drop(self) -> None:
        for layer in self.layers:
            layer.keys, layer.values = layer.keys[:, :, 2:], layer.values[:, :, 2:]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return super().get_seq_length(layer_idx) + 2

    def get_mask_sizes(self, q_len: int, layer_idx: int) -> tuple[int, int]:
        return super().get_seq_length(layer_idx) + q_len, 2


def test_a_chunk_behind_dropped_tokens_equals_a_full_cache_that_hides_them(
    make_pair: MakePair,
) -> None:
    pair, input_ids = make_pair(), torch.randint(0, VOCAB_SIZE, (1, 9))
    full = DynamicCache()
    pair.ours(input_ids[:, :5], cache=full)
    cache = WithoutTheFirstTwo()
    for layer_idx, layer in enumerate(full.layers):
        cache.update(layer.keys, layer.values, layer_idx)
    cache.drop()
    hidden = torch.ones(4, 9).tril(5).bool()
    hidden[:, :2] = False
    bias = torch.zeros(1, 1, 4, 9).masked_fill(~hidden, float("-inf"))
    expected = hide_and_run(pair, input_ids[:, 5:], full, bias)
    assert_close(pair.ours(input_ids[:, 5:], cache=cache), expected)


def hide_and_run(pair: Any, input_ids: Tensor, cache: Any, bias: Tensor) -> Tensor:
    """Run transformers' model behind a full cache under our own mask, (1, 1, q_len, kv_len)."""
    from kvlab.cache.hf import call_model

    return call_model(pair.theirs, input_ids, cache=cache, attention_mask=bias)[0]

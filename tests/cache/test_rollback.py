"""`rollback`: what was begun and not finished leaves no trace in any layer."""

from typing import Any

import pytest
import torch
import transformers

from kvlab.cache import cache_nbytes, cache_reserved_nbytes, rollback
from kvlab.errors import Unsupported

OURS = ["growing", "preallocated"]
ALL = [*OURS, "dynamic", "static", "fp8"]


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


def lengths(cache: Any) -> list[int]:
    return [int(layer.get_seq_length()) for layer in cache.layers]


class StopBetweenLayers:
    """Press stop inside layer 1, after it wrote to the cache."""

    def __init__(self, llama: Any) -> None:
        self.block = llama.model.layers[1].mlp

    def __enter__(self) -> None:
        self.hook = self.block.register_forward_pre_hook(self.stop)

    def __exit__(self, *error: object) -> None:
        self.hook.remove()

    def stop(self, *_: object) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", ALL)
def test_an_interrupt_between_layers_leaves_the_cache_as_it_was(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, undisturbed, prompt, token = new_cache(name), new_cache(name), ids(1, 5), ids(1, 1)
    for each in (cache, undisturbed):
        llama(prompt, cache=each)
    with pytest.raises(KeyboardInterrupt), rollback(cache), StopBetweenLayers(llama):
        llama(token, cache=cache)
    assert lengths(cache) == [5, 5, 5]
    retried = llama(token, cache=cache)
    assert torch.equal(retried, llama(token, cache=undisturbed))
    if name != "fp8":
        close(retried, llama(torch.cat([prompt, token], dim=1))[:, -1:])


def test_without_rollback_an_interrupt_leaves_layers_of_unequal_length(
    llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache("growing")
    llama(ids(1, 5), cache=cache)
    with pytest.raises(KeyboardInterrupt), StopBetweenLayers(llama):
        llama(ids(1, 1), cache=cache)
    assert lengths(cache) == [6, 6, 5]


@pytest.mark.parametrize("name", ALL)
def test_an_interrupted_prefill_leaves_an_empty_cache_fit_for_any_batch(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt = new_cache(name), ids(2, 5)
    with pytest.raises(KeyboardInterrupt), rollback(cache), StopBetweenLayers(llama):
        llama(ids(1, 7), cache=cache)
    assert lengths(cache) == [0, 0, 0]
    assert cache_nbytes(cache) == cache_reserved_nbytes(cache) == 0
    close(llama(prompt, cache=cache), llama(prompt))


@pytest.mark.parametrize("name", OURS)
def test_an_interrupt_between_writing_keys_and_values_is_undone(
    name: str, llama: Any, new_cache: Any, ids: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, prompt, token = new_cache(name), ids(1, 5), ids(1, 1)
    llama(prompt, cache=cache)

    def half_a_store(layer: Any, key_states: Any, value_states: Any) -> Any:
        layer.keys = torch.cat([layer.keys[:, :, :5], key_states], dim=2)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), rollback(cache):
        patch.setattr(type(cache.layers[0]), "store", half_a_store)
        llama(token, cache=cache)
    assert lengths(cache) == [5, 5, 5]
    close(llama(token, cache=cache), llama(torch.cat([prompt, token], dim=1))[:, -1:])


@pytest.mark.parametrize("name", OURS)
def test_whatever_happens_inside_a_rollback_is_undone(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt = new_cache(name), ids(2, 8)
    llama(prompt[:, :6], cache=cache)
    with pytest.raises(RuntimeError), rollback(cache):
        cache.reorder_cache(torch.tensor([1, 0]))
        cache.truncate_to(2)
        llama(ids(2, 5, seed=8), cache=cache)
        cache.reset()
        llama(ids(1, 3), cache=cache)
        raise RuntimeError
    close(llama(prompt[:, 6:], cache=cache), llama(prompt)[:, 6:])


def test_a_rollback_copies_no_tensor_and_ends_with_its_block(
    llama: Any, new_cache: Any, ids: Any
) -> None:
    for name in OURS:
        cache = new_cache(name)
        llama(ids(1, 5), cache=cache)
        before = [layer.keys.data_ptr() for layer in cache.layers]
        with rollback(cache):
            assert [layer.keys.data_ptr() for layer in cache.layers] == before
        cache.truncate_to(4)
        assert [layer.keys.data_ptr() for layer in cache.layers] == before
        assert cache.get_seq_length() == 4  # nothing is undone after a block that ended well


def test_rollbacks_can_be_nested(llama: Any, new_cache: Any, ids: Any) -> None:
    cache = new_cache("preallocated")
    with rollback(cache):
        llama(ids(1, 5), cache=cache)
        with pytest.raises(KeyboardInterrupt), rollback(cache):
            llama(ids(1, 1), cache=cache)
            raise KeyboardInterrupt
        assert lengths(cache) == [5, 5, 5]
    assert lengths(cache) == [5, 5, 5]


def test_rollback_of_no_cache_does_nothing() -> None:
    with rollback(None) as cache:
        assert cache is None


def test_a_cache_that_overwrites_its_past_is_refused_before_anything_runs() -> None:
    config = transformers.MistralConfig(num_hidden_layers=2, sliding_window=4)
    cache = transformers.StaticCache(config=config, max_cache_len=16)
    with pytest.raises(Unsupported, match="StaticSlidingWindowLayer overwrites"), rollback(cache):
        raise AssertionError("the block must not run")

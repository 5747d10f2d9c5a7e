"""A layer in blocks behaves as the layer that grows, in both Llamas, and shares what it can."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kvlab.arithmetic.memory import kv_bytes
from kvlab.cache import KVCache, call_model, generate_with, make_cache, rollback
from kvlab.cache.paged_layer import PagedLayer
from kvlab.errors import CacheFull, InvalidArgument
from kvlab.paging.rules import broken_rules

NUM_LAYERS, NUM_KV_HEADS, HEAD_DIM = 2, 2, 3
SIZES = {"num_kv_heads": 2, "head_dim": 8, "bytes_per_element": 4}


def paged_cache(num_layers: int, block_size: int = 4, **options: Any) -> KVCache:
    return KVCache(PagedLayer(block_size, **options) for _ in range(num_layers))


@pytest.mark.parametrize("chunks", [[9], [1] * 9, [4, 1, 3, 1]], ids=str)
@pytest.mark.parametrize("block_size", [1, 3, 16, 256])
def test_both_llamas_give_the_logits_of_an_uncached_run(
    llama: Any, hf_llama: Any, ids: Callable[..., Tensor], chunks: list[int], block_size: int
) -> None:
    prompt = ids(2, 9)
    uncached = llama(prompt)
    for model in (llama, hf_llama):
        cache, pieces = paged_cache(3, block_size), []
        for piece in prompt.split(chunks, dim=1):
            ours = model is llama
            pieces.append(
                model(piece, cache=cache) if ours else call_model(model, piece, cache=cache)[0]
            )
        torch.testing.assert_close(torch.cat(pieces, 1), uncached, rtol=0, atol=1e-5)
        assert cache.nbytes == kv_bytes(num_layers=3, **SIZES, seq_len=9, batch=2)
        blocks = 2 * -(-9 // block_size)
        block_nbytes = kv_bytes(num_layers=1, **SIZES, seq_len=block_size)
        assert [layer.blocks_nbytes for layer in cache.layers] == [blocks * block_nbytes] * 3
        assert broken_rules(cache.layers[0].manager) == []


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True, "seed": 4}], ids=str)
def test_transformers_writes_the_same_text_with_it(
    hf_llama: Any, ids: Callable[..., Tensor], options: dict[str, Any]
) -> None:
    prompt, cache = ids(2, 5), paged_cache(3)
    written = generate_with(hf_llama, prompt, max_new_tokens=9, cache=cache, **options)
    growing = make_cache("growing", num_layers=3)
    assert torch.equal(
        written, generate_with(hf_llama, prompt, max_new_tokens=9, cache=growing, **options)
    )
    assert cache.get_seq_length() == growing.get_seq_length()
    if "num_beams" in options:
        assert cache.nbytes < growing.nbytes  # beams share the prompt
        assert cache.layers[0].manager.stats().copied_blocks > 0


def test_repeated_rows_share_their_blocks_until_one_writes() -> None:
    layer, prompt = PagedLayer(block_size=4), torch.randn(1, 2, 6, 8)
    layer.update(prompt, prompt)
    layer.batch_repeat_interleave(3)
    assert (layer.manager.num_used, layer.blocks_nbytes) == (2, 2 * 4 * 128)
    token = torch.randn(3, 2, 1, 8)
    keys, values = layer.update(token, -token)
    assert layer.manager.num_used == 4  # the full block is shared, each has its own tail
    assert torch.equal(keys, torch.cat([prompt.expand(3, -1, -1, -1), token], dim=2))
    assert torch.equal(values[:, :, 6:], -token)
    assert layer.nbytes == (4 + 3 * 3) * 128


def test_a_capacity_is_kept() -> None:
    layer, token = PagedLayer(block_size=4, capacity=6), torch.zeros(1, 2, 1, 8)
    for _ in range(6):
        layer.update(token, token)
    with pytest.raises(CacheFull, match="6 of 6"):
        layer.update(token, token)
    assert (layer.get_seq_length(), layer.nbytes, layer.get_max_length()) == (6, 6 * 128, 6)
    for option in ({"block_size": 0}, {"capacity": 1.5}):
        with pytest.raises(InvalidArgument, match=next(iter(option))):
            PagedLayer(**option)


operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("append and fail"), st.integers(1, 5)),
        st.tuples(st.just("cut and fail"), st.integers(0, 6)),
        st.tuples(st.just("truncate"), st.integers(0, 9)),
        st.tuples(st.just("rows"), st.lists(st.integers(0, 1), min_size=2, max_size=2)),
        st.tuples(st.just("rows and fail"), st.lists(st.integers(0, 1), min_size=2, max_size=2)),
        st.tuples(st.just("clone"), st.none()),
        st.tuples(st.just("reset"), st.none()),
    ),
    max_size=14,
)


def do(cache: KVCache, name: str, argument: Any, number: int) -> KVCache:
    """Do one operation; return the cache that goes on."""
    if name == "append":
        states = torch.arange(2.0 * argument).view(2, 1, argument, 1) + 100 * number
        states = states.expand(2, NUM_KV_HEADS, argument, HEAD_DIM).clone()
        for layer_idx in range(NUM_LAYERS):
            cache.update(states + layer_idx / 4, -states, layer_idx)
    elif name == "truncate":
        cache.truncate_to(min(argument, cache.get_seq_length()))
    elif name == "rows":
        cache.select_rows(torch.tensor(argument))
    elif name == "clone":
        old, cache = cache, cache.clone()
        old.reset()
    elif name == "reset":
        cache.reset()
    else:
        with pytest.raises(KeyboardInterrupt), rollback(cache):
            first = {"cut and fail": "truncate", "rows and fail": "rows"}.get(name, "append")
            do(cache, first, argument, number)
            do(cache, "append", 3, number + 1)
            raise KeyboardInterrupt
    return cache


@pytest.mark.parametrize("block_size", [1, 4])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(operations=operations)
def test_whatever_is_done_it_holds_what_a_growing_layer_holds(
    block_size: int, operations: list[Any]
) -> None:
    caches = [paged_cache(NUM_LAYERS, block_size), make_cache("growing", num_layers=NUM_LAYERS)]
    for number, (name, argument) in enumerate(operations):
        caches = [do(cache, name, argument, 10 * number) for cache in caches]
        paged, growing = caches
        assert paged.get_seq_length() == growing.get_seq_length()
        assert paged.nbytes <= growing.nbytes
        for ours, theirs in zip(paged.layers, growing.layers, strict=True):
            if theirs.is_initialized:
                for mine, expected in zip(ours.held(), theirs.held(), strict=True):
                    assert torch.equal(mine, expected)
                assert broken_rules(ours.manager) == []
                assert ours.nbytes <= ours.blocks_nbytes <= ours.reserved_nbytes

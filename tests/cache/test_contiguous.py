"""The growing and the preallocated layer: contents, sizes, limits."""

from itertools import combinations
from typing import Any

import pytest
import torch

from kvlab.cache import GrowingLayer, PreallocatedLayer
from kvlab.errors import CacheFull, InvalidArgument

LAYERS = [GrowingLayer, lambda: PreallocatedLayer(capacity=6)]
NAMES = ["growing", "preallocated"]
CHUNKINGS = [cuts for n in range(7) for cuts in combinations(range(1, 7), n)]


def tokens(n: int, first: int = 0, batch: int = 1, head_dim: int = 4) -> torch.Tensor:
    """Return (batch, 2, n, head_dim) in which every token is told apart by its number."""
    numbers = torch.arange(first, first + n, dtype=torch.float32)
    return numbers.view(1, 1, n, 1).expand(batch, 2, n, head_dim) + torch.arange(head_dim) / 10


@pytest.mark.parametrize("name", [*NAMES, "dynamic", "static"])
def test_every_one_of_the_64_ways_to_cut_7_tokens_gives_the_same_logits(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    assert len(CHUNKINGS) == 64
    prompt = ids(2, 7)
    whole = llama(prompt)
    for cuts in CHUNKINGS:
        cache = new_cache(name, capacity=7)
        pieces = torch.tensor_split(prompt, cuts, dim=1)
        logits = torch.cat([llama(piece, cache=cache) for piece in pieces], dim=1)
        torch.testing.assert_close(logits, whole, rtol=0, atol=1e-4)


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("name", NAMES)
def test_every_stored_row_is_the_projection_of_its_hidden_state(
    name: str, length: int, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt = new_cache(name), ids(1, length)
    llama(prompt, cache=cache)
    block = llama.model.layers[0]
    hidden = block.input_layernorm(llama.model.embed_tokens(prompt))
    expected = block.self_attn.v_proj(hidden).view(1, length, 2, 8).transpose(1, 2)
    keys, values = cache.layers[0].held()
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-6)
    assert cache.get_seq_length() == length
    assert (keys.abs().amax(dim=(1, 3)) > 0).all() and (values.abs().amax(dim=(1, 3)) > 0).all()


@pytest.mark.parametrize("make", LAYERS, ids=NAMES)
def test_update_returns_all_tokens_in_order(make: Any) -> None:
    layer = make()
    layer.update(tokens(3), -tokens(3))
    keys, values = layer.update(tokens(2, first=3), -tokens(2, first=3))
    assert torch.equal(keys, tokens(5)) and torch.equal(values, -tokens(5))
    assert layer.get_seq_length() == layer.num_kept() == 5


@pytest.mark.parametrize("make", LAYERS, ids=NAMES)
def test_mask_sizes_asked_before_the_update_tell_what_the_update_returns(make: Any) -> None:
    layer = make()
    for q_len in (3, 1, 2):
        kv_len, kv_offset = layer.get_mask_sizes(q_len)
        keys, _ = layer.update(tokens(q_len), tokens(q_len))
        assert (keys.shape[2], 0) == (kv_len, kv_offset)


def test_a_growing_layer_reserves_exactly_what_it_holds() -> None:
    layer = GrowingLayer()
    assert (layer.nbytes, layer.reserved_nbytes) == (0, 0)
    for held in range(1, 5):
        layer.update(tokens(1), tokens(1))
        assert layer.nbytes == layer.reserved_nbytes == held * 2 * 2 * 4 * 4


def test_a_preallocated_layer_reserves_its_capacity_and_holds_its_tokens() -> None:
    layer = PreallocatedLayer(capacity=6)
    assert (layer.nbytes, layer.reserved_nbytes) == (0, 0)  # allocated when the shape is known
    layer.update(tokens(2), tokens(2))
    assert (layer.nbytes, layer.reserved_nbytes) == (2 * 2 * 2 * 4 * 4, 6 * 2 * 2 * 4 * 4)


def test_a_preallocated_layer_writes_in_place_and_returns_views() -> None:
    layer = PreallocatedLayer(capacity=6)
    keys, _ = layer.update(tokens(2), tokens(2))
    more, _ = layer.update(tokens(1), tokens(1))
    assert keys.data_ptr() == more.data_ptr() == layer.keys.data_ptr()


def test_what_lies_in_the_spare_room_never_reaches_attention(
    llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt = new_cache("preallocated", capacity=16), ids(1, 14)
    llama(prompt[:, :13], cache=cache)
    for layer in cache.layers:
        layer.keys[:, :, 13:] = layer.values[:, :, 13:] = float("nan")
    logits = llama(prompt[:, 13:], cache=cache)
    torch.testing.assert_close(logits, llama(prompt)[:, 13:], rtol=0, atol=1e-4)


def test_a_full_cache_refuses_before_anything_is_written() -> None:
    layer = PreallocatedLayer(capacity=6)
    layer.update(tokens(6), tokens(6))
    before = layer.keys.clone()
    with pytest.raises(CacheFull, match="cache full: 6 of 6"):
        layer.update(tokens(1), tokens(1))
    assert layer.get_seq_length() == 6 and torch.equal(layer.keys, before)


def test_a_prompt_longer_than_the_capacity_leaves_every_layer_empty(
    llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache("preallocated", capacity=6)
    with pytest.raises(CacheFull, match="0 of 6 tokens held, no room for 7 more"):
        llama(ids(1, 7), cache=cache)
    assert [layer.get_seq_length() for layer in cache.layers] == [0, 0, 0]
    assert cache.reserved_nbytes == 0


@pytest.mark.parametrize("make", LAYERS, ids=NAMES)
@pytest.mark.parametrize(
    "wrong", [tokens(1, batch=2), tokens(1, head_dim=8), tokens(1).half(), tokens(1)[:, :1]]
)
def test_tokens_of_another_kind_are_refused_and_change_nothing(make: Any, wrong: Any) -> None:
    layer = make()
    layer.update(tokens(2), tokens(2))
    with pytest.raises(InvalidArgument, match="key_states"):
        layer.update(wrong, wrong)
    assert torch.equal(layer.held()[0], tokens(2))


@pytest.mark.parametrize("make", LAYERS, ids=NAMES)
def test_keys_and_values_must_speak_of_the_same_tokens(make: Any) -> None:
    with pytest.raises(InvalidArgument, match="num_kv_heads, q_len, head_dim"):
        make().update(tokens(2), tokens(1))
    with pytest.raises(InvalidArgument, match="num_kv_heads, q_len, head_dim"):
        make().update(tokens(2)[0], tokens(2)[0])


@pytest.mark.parametrize("make", LAYERS, ids=NAMES)
def test_keys_and_values_may_have_different_widths(make: Any) -> None:
    layer = make()
    keys, values = layer.update(tokens(2, head_dim=6), tokens(2, head_dim=4))
    assert (keys.shape[3], values.shape[3], layer.nbytes) == (6, 4, 2 * 2 * (6 + 4) * 4)


def test_a_capacity_below_one_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="capacity=0: must be a whole number of 1 or more"):
        PreallocatedLayer(capacity=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("then", ["nothing", "select rows", "clone"])
def test_a_cache_filled_in_inference_mode_can_be_used_outside_of_it(
    name: str, then: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt = new_cache(name), ids(2, 9)
    with torch.inference_mode():
        llama(prompt[:, :4], cache=cache)
        if then == "select rows":
            cache.select_rows(torch.tensor([0, 1]))
        elif then == "clone":
            cache = cache.clone()
    logits = llama(prompt[:, 4:], cache=cache)
    torch.testing.assert_close(logits, llama(prompt)[:, 4:], rtol=0, atol=1e-4)

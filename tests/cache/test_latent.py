"""`LatentLayer`: what it stores, to the byte, what it refuses, and what it can undo."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.cache import KVCache, rollback
from kvlab.cache.latent import LatentLayer, latent_nbytes
from kvlab.errors import InvalidArgument

RANK, ROPE = 6, 2


def tokens(n: int, batch: int = 1, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a latent and a RoPE key of n tokens, told apart by their numbers."""
    numbers = torch.arange(first, first + n, dtype=torch.float32).view(1, 1, n, 1)
    return numbers.expand(batch, 1, n, RANK).clone(), -numbers.expand(batch, 1, n, ROPE).clone()


@settings(max_examples=40, deadline=None)
@given(
    chunks=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    batch=st.integers(1, 3),
    rank=st.integers(1, 40),
    rope=st.integers(1, 12),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
def test_the_bytes_held_are_those_of_the_formula(
    chunks: list[int], batch: int, rank: int, rope: int, dtype: torch.dtype
) -> None:
    layer = LatentLayer()
    for n in chunks:
        sizes = (batch, 1, n, rank), (batch, 1, n, rope)
        layer.update(*(torch.zeros(size, dtype=dtype) for size in sizes))
    expected = latent_nbytes(
        kv_lora_rank=rank,
        qk_rope_head_dim=rope,
        bytes_per_element=dtype.itemsize,
        seq_len=sum(chunks),
        batch=batch,
    )
    assert layer.nbytes == layer.reserved_nbytes == expected


def test_latent_and_rope_key_come_back_in_order_and_by_name() -> None:
    layer = LatentLayer(kv_lora_rank=RANK, qk_rope_head_dim=ROPE)
    layer.update(*tokens(3))
    latent, rope_key = layer.update(*tokens(2, first=3))
    assert torch.equal(latent, tokens(5)[0]) and torch.equal(rope_key, tokens(5)[1])
    assert torch.equal(layer.latent, latent) and torch.equal(layer.rope_key, rope_key)


def test_it_can_be_shortened_reordered_cloned_rolled_back_and_reset() -> None:
    cache = KVCache([LatentLayer()])
    latent, rope_key = tokens(4, batch=2)
    latent[1] += 100
    cache.update(latent, rope_key, 0)
    cache.truncate_to(3)
    cache.select_rows(torch.tensor([1, 0]))
    twin = cache.clone()
    with pytest.raises(KeyboardInterrupt), rollback(cache):
        cache.update(*tokens(2, batch=2), 0)
        raise KeyboardInterrupt
    for each in (cache, twin):
        assert torch.equal(each.layers[0].latent, latent[[1, 0], :, :3])
        assert torch.equal(each.layers[0].rope_key, rope_key[:, :, :3])
    cache.reset()
    assert (cache.nbytes, cache.get_seq_length(), twin.get_seq_length()) == (0, 0, 3)


def test_heads_are_refused_in_a_sentence(llama: Any, ids: Any) -> None:
    cache = KVCache(LatentLayer() for _ in range(3))
    with pytest.raises(InvalidArgument, match="heads of the latent=2: a latent is one for all"):
        llama(ids(1, 4), cache=cache)
    assert cache.get_seq_length() == 0


@pytest.mark.parametrize(
    ("made_for", "sentence"),
    [
        ({"kv_lora_rank": 8}, "kv_lora_rank=6: this layer was made for 8"),
        ({"qk_rope_head_dim": 4}, "qk_rope_head_dim=2: this layer was made for 4"),
    ],
)
def test_other_widths_are_refused_by_name(made_for: dict[str, int], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        LatentLayer(**made_for).update(*tokens(1))


@pytest.mark.parametrize("name", ["kv_lora_rank", "qk_rope_head_dim"])
def test_a_width_below_one_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{name}=0: must be a whole number of 1 or more"):
        LatentLayer(**{name: 0})

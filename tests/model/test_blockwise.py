"""Block by block is the plain softmax, and it does not matter where the blocks lie."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.errors import InvalidArgument
from kvlab.model.blockwise import (
    attend_by_blocks,
    attend_plain,
    contiguous_blocks,
    paged_blocks,
    scatter,
)


def drawn(kv_len: int, seed: int, spread: float = 1.0) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    keys, values = (random.normal(size=(kv_len, 8)) for _ in range(2))
    return spread * random.normal(size=8), keys, values


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 99), st.sampled_from([1e-3, 1, 300]))
def test_any_block_size_gives_the_plain_attention(
    kv_len: int, block_size: int, seed: int, spread: float
) -> None:
    query, keys, values = drawn(kv_len, seed, spread)
    blocks = contiguous_blocks(keys, values, block_size)
    np.testing.assert_allclose(
        attend_by_blocks(query, blocks), attend_plain(query, keys, values), rtol=1e-9, atol=1e-12
    )


def test_it_equals_torch() -> None:
    query, keys, values = drawn(21, 3)
    tensors = (torch.from_numpy(x)[None, None] for x in (query[None], keys, values))
    expected = F.scaled_dot_product_attention(*tensors)[0, 0, 0].numpy()
    np.testing.assert_allclose(
        attend_by_blocks(query, contiguous_blocks(keys, values, 4)), expected, rtol=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 7), st.randoms())
def test_scattered_blocks_give_the_same_bits_and_no_empty_slot_is_read(
    kv_len: int, block_size: int, random
) -> None:  # type: ignore[no-untyped-def]
    query, keys, values = drawn(kv_len, 5)
    needed = -(-kv_len // block_size)
    table = random.sample(range(needed + 3), needed)
    stores = [scatter(rows, table, needed + 3, block_size) for rows in (keys, values)]
    paged = attend_by_blocks(query, paged_blocks(*stores, table, kv_len))
    whole = attend_by_blocks(query, contiguous_blocks(keys, values, block_size))
    assert np.isfinite(paged).all()
    np.testing.assert_allclose(paged, whole, rtol=1e-12)


def test_a_table_that_is_too_short_is_refused() -> None:
    store = np.zeros((2, 4, 8))
    with pytest.raises(InvalidArgument, match="at most 4"):
        list(paged_blocks(store, store, [1], kv_len=5))

"""Attention of one query, block by block: how it is computed, and where its blocks may lie.

Numpy only. The softmax is put together as the blocks come, so no row of scores is ever whole:
the idea of FlashAttention. The blocks may come from anywhere: the idea of PagedAttention.
Left out: many queries at once, and everything that makes it fast on a GPU.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

Array = np.ndarray
Block = tuple[Array, Array]
"""Keys and values of some neighbouring positions, each (tokens, head_dim)."""


def attend_plain(query: Array, keys: Array, values: Array) -> Array:
    """Return the attention of one query with the whole row of scores at once.

    query: (head_dim,), keys and values: (kv_len, head_dim); returns (head_dim,).
    """
    scores = keys @ query / np.sqrt(len(query))
    powers = np.exp(scores - scores.max())
    return powers @ values / powers.sum()


def attend_by_blocks(query: Array, blocks: Iterable[Block]) -> Array:
    """Return the same attention, with one block at a time and three things remembered.

    >>> store = np.eye(4)
    >>> one = attend_by_blocks(store[0], contiguous_blocks(store, store, 3))
    >>> bool(np.allclose(one, attend_plain(store[0], store, store)))
    True
    """
    largest, total, mixed = -np.inf, 0.0, 0.0  # of the scores so far; sum; weighted sum
    for keys, values in blocks:
        scores = keys @ query / np.sqrt(len(query))  # (tokens of this block,)
        new_largest = max(largest, scores.max())
        shrink = np.exp(largest - new_largest)  # what was summed used a smaller maximum
        powers = np.exp(scores - new_largest)
        total = total * shrink + powers.sum()
        mixed = mixed * shrink + powers @ values
        largest = new_largest
    return mixed / total


def contiguous_blocks(keys: Array, values: Array, block_size: int) -> Iterator[Block]:
    """Give a cache that lies in one piece as blocks of at most `block_size` tokens, in order."""
    size = whole_number("block_size", block_size)
    for start in range(0, len(keys), size):
        yield keys[start : start + size], values[start : start + size]


def paged_blocks(
    key_store: Array, value_store: Array, block_table: Sequence[int], kv_len: int
) -> Iterator[Block]:
    """Give the blocks that a block table names, in its order; the last one may be part empty.

    The stores are (num_blocks, block_size, head_dim). Slots past `kv_len` are never read.
    """
    block_size = key_store.shape[1]
    whole_number("kv_len", kv_len)
    if kv_len > len(block_table) * block_size:
        rule = f"must be at most {len(block_table) * block_size}, the slots of the block table"
        raise InvalidArgument("kv_len", kv_len, rule)
    for index, block_id in enumerate(block_table):
        filled = min(block_size, kv_len - index * block_size)
        if filled > 0:
            yield key_store[block_id][:filled], value_store[block_id][:filled]


def scatter(rows: Array, block_table: Sequence[int], num_blocks: int, block_size: int) -> Array:
    """Return a store (num_blocks, block_size, head_dim) with `rows` laid out by the table.

    Slots that hold nothing are NaN, so that a read of one can't go unseen.

    >>> store = scatter(np.arange(6.0).reshape(3, 2), [1, 0], num_blocks=2, block_size=2)
    >>> store[1].tolist(), store[0][0].tolist()
    ([[0.0, 1.0], [2.0, 3.0]], [4.0, 5.0])
    """
    store = np.full((num_blocks, block_size, rows.shape[1]), np.nan, dtype=rows.dtype)
    for position, row in enumerate(rows):
        store[block_table[position // block_size], position % block_size] = row
    return store

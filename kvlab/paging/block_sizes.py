"""What a block size costs at both ends: large blocks waste slots, small ones need more keeping.

Counted, not timed. Left out: how fast a kernel of some device reads pieces of some length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.paging.waste import mean_wasted_share, total_blocks, wasted_share

TABLE_ENTRY_BYTES = 4
"""A block number in a block table: 32 bits."""


@dataclass(frozen=True, slots=True)
class BlockSizeCost:
    """One block size on one set of lengths.

    wasted: share of the slots taken without a token. expected: the same by formula, for lengths
    spread evenly. table_entries: block numbers of a sequence on average. turns: appends that need
    the pool, of 1,000. piece_bytes: neighbouring bytes of one layer's keys. unshared: tokens of a
    common prefix that each sequence keeps again, on average over all prefix lengths.
    """

    block_size: int
    wasted: float
    expected: float
    table_entries: float
    turns: float
    piece_bytes: int
    unshared: float


def block_size_cost(
    seq_lens: Sequence[int], block_size: int, *, bytes_per_token_layer_keys: int
) -> BlockSizeCost:
    """Return what `block_size` costs sequences of these lengths.

    `bytes_per_token_layer_keys` are the bytes of one token's keys in one layer.

    >>> cost = block_size_cost([500, 2000, 100], 16, bytes_per_token_layer_keys=2048)
    >>> round(100 * cost.wasted, 2), cost.piece_bytes, cost.turns, cost.unshared
    (0.91, 32768, 62.5, 7.5)
    """
    size = whole_number("block_size", block_size)
    lens = list(seq_lens)
    return BlockSizeCost(
        block_size=size,
        wasted=wasted_share(lens, size),
        expected=mean_wasted_share(sum(lens) / len(lens), size),
        table_entries=total_blocks(lens, size) / len(lens),
        turns=1000 / size,
        piece_bytes=size * bytes_per_token_layer_keys,
        unshared=(size - 1) / 2,
    )

"""What claims, questions and checks of chapter 06 need: slots taken, filled and wasted."""

from collections.abc import Callable
from typing import Any

from kvlab.paging.waste import (
    blocks_for,
    mean_length_for,
    mean_wasted_share,
    unused_slots,
    wasted_share,
)

CELLS = 16
"""Cells in which a published chart draws a reservation."""


def waste_percent(seq_lens: list[int], block_size: int) -> float:
    """Return the share of the slots taken that hold no token, in percent.

    >>> round(waste_percent([2048], 32768), 2)
    93.75
    """
    return 100 * wasted_share(seq_lens, block_size)


def cells_filled(seq_lens: list[int], reserved: int) -> list[float]:
    """Return how many of 16 cells of a reservation each length fills.

    >>> cells_filled([2048], 32768)
    [1.0]
    """
    return [CELLS * tokens / reserved for tokens in seq_lens]


def cells_drawn_percent(cells: list[int]) -> list[float]:
    """Return the waste that so many filled cells of 16 show, in percent."""
    return [100 * (1 - filled / CELLS) for filled in cells]


def slot_of(position: int, block_id: int, block_size: int) -> int:
    """Return the slot of a position that lies in block `block_id`.

    >>> slot_of(20, 7, 16)
    116
    """
    return block_id * block_size + position % block_size


def blocks_of_three(a: int, b: int, c: int, block_size: int) -> int:
    """Return the blocks of three sequences together."""
    return sum(blocks_for(n, block_size) for n in (a, b, c))


def mean_waste_percent(mean_seq_len: float, block_size: int) -> float:
    """Return what paging wastes at a mean length, in percent, lengths spread evenly."""
    return 100 * mean_wasted_share(mean_seq_len, block_size)


def mean_length_for_percent(percent: float, block_size: int) -> float:
    """Return the mean length below which paging wastes more than so many percent."""
    return mean_length_for(percent / 100, block_size)


def used_to_waste_percent(most: float, least: float) -> list[float]:
    """Return the waste, in percent, of an effective use between two percentages.

    >>> [round(waste, 1) for waste in used_to_waste_percent(38.2, 20.4)]
    [61.8, 79.6]
    """
    return [100 - most, 100 - least]


ALL: tuple[Callable[..., Any], ...] = (
    blocks_for,
    unused_slots,
    waste_percent,
    cells_filled,
    cells_drawn_percent,
    slot_of,
    blocks_of_three,
    mean_waste_percent,
    mean_length_for_percent,
    used_to_waste_percent,
)

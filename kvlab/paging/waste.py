"""Memory that holds no token: by formula, and counted in an allocator.

Three kinds, which are easy to mix up. Reserved: a token will come, later. Internal: part of what
somebody has, and no token will ever come. External: free, but in pieces too short to be of use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.paging.block_queries import BlockQueries
    from kvlab.paging.contiguous import ContiguousManager

# -- formulas ----------------------------------------------------------------------------


def blocks_for(seq_len: int, block_size: int) -> int:
    """Return ceil(seq_len / block_size), the blocks of one sequence.

    >>> blocks_for(2048, block_size=16), blocks_for(17, block_size=16)
    (128, 2)
    """
    tokens = whole_number("seq_len", seq_len, minimum=0)
    return -(-tokens // whole_number("block_size", block_size))


def total_blocks(seq_lens: Iterable[int], block_size: int) -> int:
    """Return the blocks of all sequences together; each is checked, without a call for it.

    >>> total_blocks([500, 2000, 100], block_size=16)
    164
    """
    size = whole_number("block_size", block_size)
    lens = [
        n if n.__class__ is int and n >= 0 else whole_number("seq_len", n, minimum=0)
        for n in seq_lens
    ]
    return sum([-(-n // size) for n in lens])


def unused_slots(seq_len: int, block_size: int) -> int:
    """Return the slots of the last block without a token: always fewer than block_size.

    >>> [unused_slots(seq_len, block_size=16) for seq_len in (500, 2000, 100)]
    [12, 0, 12]
    """
    return blocks_for(seq_len, block_size) * block_size - seq_len


def wasted_share(seq_lens: list[int], block_size: int) -> float:
    """Return the share of the slots taken that hold no token, over all sequences together.

    A contiguous reservation is one block as long as the longest sequence allowed.

    >>> round(100 * wasted_share([500, 2000, 100], block_size=16), 2)
    0.91
    >>> [round(100 * wasted_share([n], block_size=32768), 2) for n in (500, 2000, 100)]
    [98.47, 93.9, 99.69]
    """
    taken = total_blocks(seq_lens, block_size) * block_size
    if taken == 0:
        raise InvalidArgument("seq_lens", seq_lens, "no slot is taken: there is no share of none")
    return (taken - sum(seq_lens)) / taken


def mean_wasted_share(mean_seq_len: float, block_size: int) -> float:
    """Return what paging wastes where every fill of the last block is equally likely.

    Then the last block has (block_size - 1) / 2 slots too many, whatever the length.

    >>> round(100 * mean_wasted_share(180, block_size=16), 2)
    4.0
    """
    if not mean_seq_len > 0:
        raise InvalidArgument("mean_seq_len", mean_seq_len, "must be more than 0")
    slack = (whole_number("block_size", block_size) - 1) / 2
    return slack / (mean_seq_len + slack)


def mean_length_for(share: float, block_size: int) -> float:
    """Return the mean length in tokens below which paging wastes more than `share`.

    >>> round(mean_length_for(0.04, block_size=16), 6)
    180.0
    """
    if not 0 < share < 1:
        raise InvalidArgument("share", share, "must lie between 0 and 1")
    return (whole_number("block_size", block_size) - 1) / 2 * (1 - share) / share


def shared_and_own(prefix_tokens: int, block_size: int) -> tuple[int, int]:
    """Return (tokens of a common prefix that are stored once, those that each stores again).

    Only full blocks are shared. 100 requests that begin with the same 1,000 tokens:

    >>> shared_and_own(1000, block_size=16)
    (992, 8)
    """
    tokens = whole_number("prefix_tokens", prefix_tokens, minimum=0)
    own = tokens % whole_number("block_size", block_size)
    return tokens - own, own


# -- counted -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlotUse:
    """What every slot of a pool is doing; the six numbers add up to `num_slots`.

    `external` slots are free, but no request of the size asked about fits in them; `free` ones
    are of use; `idle` ones hold a cached prefix that nobody uses just now.
    """

    num_slots: int
    used: int
    reserved: int
    internal: int
    external: int
    idle: int
    free: int

    @property
    def wasted_share(self) -> float:
        """Of the slots that are neither free nor idle, the share that holds no token."""
        taken = self.num_slots - self.free - self.idle
        return 1 - self.used / taken if taken else 0.0


def paged_use(manager: BlockQueries) -> SlotUse:
    """Count the slots of a block manager; a block that many share counts once.

    >>> from kvlab.paging import BlockManager
    >>> manager = BlockManager(num_blocks=8, block_size=16)
    >>> cached = [manager.allocate(n, n) for n in (17, 16, 1, 0)]
    >>> use = paged_use(manager)
    >>> use.used, use.internal, use.free
    (34, 30, 64)
    """
    size, filled = manager.block_size, {}
    for table in manager.tables.values():
        for i, block_id in enumerate(table.held(), table.num_dropped):
            tokens = min(size, table.num_tokens - i * size)
            filled[block_id] = max(tokens, filled.get(block_id, 0))
    used = sum(filled.values())
    idle, free = len(manager.pool.idle_block_ids), len(manager.pool.free_block_ids)
    return SlotUse(
        num_slots=manager.num_blocks * size,
        used=used,
        reserved=0,
        internal=len(filled) * size - used,
        external=0,  # every block is as good as any other
        idle=idle * size,
        free=free * size,
    )


def contiguous_use(manager: ContiguousManager, wanted: int | None = None) -> SlotUse:
    """Count the slots of a contiguous allocator, for a next request that reserves `wanted` slots.

    Where `final_length` is not known nobody can tell reserved from internal; all is internal then.

    >>> from kvlab.paging.contiguous import ContiguousManager
    >>> manager = ContiguousManager(100, max_seq_len=40, final_length=lambda seq_id: 25)
    >>> cached = manager.allocate("a", 10), manager.allocate("b", 10)
    >>> contiguous_use(manager)
    SlotUse(num_slots=100, used=20, reserved=30, internal=30, external=20, idle=0, free=0)
    """
    wanted = manager.max_seq_len if wanted is None else whole_number("wanted", wanted)
    used = reserved = internal = 0
    for seq_id, held in manager.reservations.items():
        final = held.num_tokens
        if manager.final_length is not None:
            final = min(held.length, max(final, manager.final_length(seq_id)))
        used += held.num_tokens
        reserved += final - held.num_tokens
        internal += held.length - final
    external = sum(length for _, length in manager.holes if length < wanted)
    free = manager.num_free - external
    return SlotUse(manager.num_blocks, used, reserved, internal, external, 0, free)

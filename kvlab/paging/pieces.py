"""What an allocator has handed out, as pieces of one memory: what a picture draws to scale."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from kvlab.paging.block_manager import BlockManager
from kvlab.paging.block_table import BlockTable
from kvlab.paging.contiguous import ContiguousManager, Reservation
from kvlab.paging.waste import SlotUse, contiguous_use, paged_use

Manager = BlockManager | ContiguousManager


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring slots of one owner: the first `filled` hold tokens, `coming` more will."""

    owners: tuple[int, ...]
    start: int
    length: int
    filled: int
    coming: int = 0


def pieces_of(manager: Manager) -> Iterator[Piece]:
    """Yield what every sequence holds as pieces of memory; a block that many share comes once.

    Sequences are named by their numbers.

    >>> manager = BlockManager(num_blocks=4, block_size=4)
    >>> _ = manager.allocate(0, 6)
    >>> [(piece.start, piece.filled) for piece in pieces_of(manager)]
    [(0, 4), (4, 2)]
    """
    if isinstance(manager, ContiguousManager):
        for seq_id, held in manager.reservations.items():
            final = held.length if manager.final_length is None else manager.final_length(seq_id)
            coming = max(0, min(final, held.length) - held.num_tokens)
            yield Piece((seq_id,), held.start, held.length, held.num_tokens, coming)
        return
    owners: dict[int, list[int]] = {}
    filled: dict[int, int] = {}
    size = manager.block_size
    for seq_id, table in manager.tables.items():
        for place, block_id in enumerate(table.block_ids):
            if block_id >= 0:
                owners.setdefault(block_id, []).append(seq_id)
                tokens = min(size, table.num_tokens - place * size)
                filled[block_id] = max(tokens, filled.get(block_id, 0))
    for block_id in sorted(owners):
        yield Piece(tuple(owners[block_id]), block_id * size, size, filled[block_id])


def use_of(manager: Manager) -> SlotUse:
    """Return what every slot of either allocator is doing.

    >>> use_of(BlockManager(num_blocks=4, block_size=4)).free
    16
    """
    one_piece = isinstance(manager, ContiguousManager)
    return contiguous_use(manager) if one_piece else paged_use(manager)


class Snapshot(NamedTuple):
    """What an allocator held at one time, in plain rows; `thawed` makes it one to be asked."""

    manager: Manager
    rows: list[tuple[Any, ...]]
    room: Any


def snapshot(manager: Manager) -> Snapshot:
    """Note what an allocator holds now, in a microsecond a sequence: later steps do not change it.

    >>> manager = BlockManager(num_blocks=4, block_size=4)
    >>> _ = manager.allocate(0, 6)
    >>> before = snapshot(manager)
    >>> manager.free(0)
    >>> [piece.filled for piece in pieces_of(thawed(before))], [*pieces_of(manager)]
    ([4, 2], [])
    """
    if isinstance(manager, ContiguousManager):
        rows = [(k, r.start, r.length, r.num_tokens) for k, r in manager.reservations.items()]
        return Snapshot(manager, rows, list(manager.holes))
    tables, pool = manager.tables, manager.pool
    rows = [(k, t.block_ids[:], t.num_tokens, t.num_dropped) for k, t in tables.items()]
    return Snapshot(manager, rows, (len(pool.free_block_ids), len(pool.idle_block_ids)))


def thawed(seen: Snapshot) -> Manager:
    """Return an allocator that holds what `seen` noted; it is there to be counted, not to go on."""
    twin = copy(seen.manager)
    if isinstance(twin, ContiguousManager):
        twin.holes = seen.room
        twin.reservations = {key: Reservation(*piece) for key, *piece in seen.rows}
        return twin
    twin.tables, pool = {}, copy(seen.manager.pool)
    for key, block_ids, num_tokens, num_dropped in seen.rows:
        twin.tables[key] = table = BlockTable(block_ids, num_tokens)
        table.num_dropped = num_dropped
    free, idle = seen.room
    pool.free_block_ids = list(range(free))  # how many, not which
    pool.idle_block_ids = OrderedDict.fromkeys(range(idle))
    twin.pool = pool
    return twin

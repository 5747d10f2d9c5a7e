"""What an allocator has handed out, as pieces of one memory: what a picture draws to scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvlab.paging.block_manager import BlockManager
from kvlab.paging.contiguous import ContiguousManager

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
    for seq_id in manager.tables:
        for place, block_id in enumerate(manager.block_table(seq_id)):
            if block_id >= 0:
                owners.setdefault(block_id, []).append(seq_id)
                tokens = min(size, manager.num_tokens(seq_id) - place * size)
                filled[block_id] = max(tokens, filled.get(block_id, 0))
    for block_id in sorted(owners):
        yield Piece(tuple(owners[block_id]), block_id * size, size, filled[block_id])

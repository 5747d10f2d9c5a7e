"""The block table of one sequence: which block holds its tokens 0 to block_size - 1, and so on.

An operating system would say page and page table. Here is only the look-up; who may have which
block is decided in `block_manager.py`.
"""

from __future__ import annotations

from collections.abc import Hashable

from kvlab.errors import InvalidArgument

DROPPED = -1
"""Stands in a table for a block that fell out of the sliding window."""


class BlockTable:
    """The blocks of one sequence, in the order of its tokens, and how far they are filled.

    The token at position p lies in block `block_ids[p // block_size]`, at offset p % block_size.

    >>> table = BlockTable([7, 2], num_tokens=5)
    >>> table.slots(3, 5, block_size=4)  # block 7, offset 3; block 2, offset 0
    [31, 8]
    """

    __slots__ = (
        "block_ids",  # one per block_size tokens, the last one perhaps part full
        "commit_at",  # from this many computed tokens on there is a block to commit
        "extra_keys",  # what else must be equal to share
        "num_cached_tokens",  # found in the prefix index when the sequence came
        "num_committed",  # blocks at the front that others may find
        "num_dropped",  # blocks at the front that fell out of the window
        "num_tokens",  # slots promised to tokens
        "room",  # up to this many tokens an append needs no bookkeeping
    )

    def __init__(self, block_ids: list[int], num_tokens: int, extra_keys: Hashable = ()) -> None:
        self.block_ids = block_ids
        self.num_tokens = num_tokens
        self.extra_keys = extra_keys
        self.num_cached_tokens = self.num_committed = self.num_dropped = self.commit_at = 0
        self.room = num_tokens

    def fork(self) -> BlockTable:
        """Return a table of its own with the same blocks."""
        twin = BlockTable(list(self.block_ids), self.num_tokens, self.extra_keys)
        twin.num_cached_tokens, twin.num_committed = self.num_cached_tokens, self.num_committed
        twin.num_dropped, twin.commit_at, twin.room = self.num_dropped, self.commit_at, self.room
        return twin

    def held(self) -> list[int]:
        """Return the blocks that are still held, in token order."""
        return self.block_ids[self.num_dropped :]

    def slots(self, start: int, end: int, block_size: int) -> list[int]:
        """Return the slot, block_id x block_size + offset, of each position from start to end - 1.

        Raises `InvalidArgument` for positions that the table does not hold.
        """
        if not self.num_dropped * block_size <= start <= end <= self.num_tokens:
            held = f"positions {self.num_dropped * block_size} to {self.num_tokens} are held"
            raise InvalidArgument("start, end", (start, end), held)
        ids = self.block_ids
        return [ids[p // block_size] * block_size + p % block_size for p in range(start, end)]

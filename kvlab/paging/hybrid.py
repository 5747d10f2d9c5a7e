"""Models whose layers do not all look equally far: one pool, a block table for each kind of layer.

A group is the layers that share a window (or have none). Every group pages for itself, so a group
with a window gives old blocks back while one without keeps them. Left out: prefix sharing, which
would have to find the prefix in every group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, OutOfBlocks
from kvlab.paging.block_manager import BlockManager
from kvlab.paging.block_pool import BlockPool
from kvlab.paging.block_queries import SeqId


class HybridManager:
    """Block tables by group of layers, all from one pool; a step is done in every group or in none.

    windows: for each group the tokens that its layers see, None for all. A block of the pool is as
    large for one group as for another, so a block is (block_size tokens) x (layers of a group).

    >>> manager = HybridManager(20, block_size=4, windows={"full": None, "window": 8})
    >>> manager.allocate("a", 12)
    >>> for _ in range(8):
    ...     manager.append("a")
    >>> manager.block_table("a", "full"), manager.block_table("a", "window")
    ([0, 1, 2, 3, 4], [-1, -1, -1, 6, 7])
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        windows: Mapping[str, int | None],
        *,
        block_order: Sequence[int] | None = None,
    ) -> None:
        if not windows:
            raise InvalidArgument("windows", windows, "name at least one group of layers")
        self.pool = BlockPool(num_blocks, order=block_order)
        self.groups = {
            name: BlockManager(
                num_blocks,
                block_size,
                prefix_caching=False,
                sliding_window=window,
                pool=self.pool,
            )
            for name, window in windows.items()
        }

    @property
    def num_free(self) -> int:
        """Blocks that no group holds."""
        return self.pool.num_free

    def block_table(self, seq_id: SeqId, group: str) -> list[int]:
        """Return a sequence's blocks in one group; -1 where one fell out of the window."""
        return self._group(group).block_table(seq_id)

    def slot_mapping(self, seq_id: SeqId, group: str, start: int, end: int) -> list[int]:
        """Return the slots of the positions from start to end - 1 in one group."""
        return self._group(group).slot_mapping(seq_id, start, end)

    def allocate(self, seq_id: SeqId, num_tokens: int) -> None:
        """Give a new sequence slots in every group. Raises `OutOfBlocks`."""
        tokens = whole_number("num_tokens", num_tokens, minimum=0)
        needed = sum(group.blocks_for(tokens) for group in self.groups.values())
        self._check_room(seq_id, needed)
        for group in self.groups.values():
            group.allocate(seq_id, tokens)

    def append(self, seq_id: SeqId, num_new_tokens: int = 1) -> None:
        """Give a sequence slots for more tokens in every group. Raises `OutOfBlocks`."""
        for group in self.groups.values():
            group.drop_unseen(seq_id)
        needed = sum(group.blocks_needed(seq_id, num_new_tokens) for group in self.groups.values())
        self._check_room(seq_id, needed)
        for group in self.groups.values():
            group.append(seq_id, num_new_tokens)

    def fork(self, parent_id: SeqId, child_id: SeqId) -> None:
        """Let a new sequence begin with all the tokens of another, in every group."""
        for group in self.groups.values():
            group.fork(parent_id, child_id)

    def free(self, seq_id: SeqId) -> None:
        """Give back all that a sequence holds."""
        for group in self.groups.values():
            group.free(seq_id)

    def copies(self) -> dict[str, list[tuple[int, int]]]:
        """Return the block copies not yet carried out, by group."""
        return {name: group.copies() for name, group in self.groups.items()}

    def _group(self, name: str) -> BlockManager:
        if name not in self.groups:
            raise InvalidArgument("group", name, f"must be one of {', '.join(self.groups)}")
        return self.groups[name]

    def _check_room(self, seq_id: SeqId, needed: int) -> None:
        if needed > self.num_free:
            raise OutOfBlocks(seq_id, needed=needed, available=self.num_free)

"""The pool: a fixed number of blocks, each of them free, in use, or idle.

Idle means that nobody uses the block, but a later request may ask for what is in it. The pool
counts users and decides which block goes next; what a block holds is not known here.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, OutOfBlocks


class BlockPool:
    """Hand out block ids, count their users, and evict idle blocks when no free one is left.

    Idle blocks wait in the order in which they were left: the least recently used goes first.

    >>> pool = BlockPool(3)
    >>> pool.take(2), pool.num_free
    ([0, 1], 1)
    >>> pool.release([1])
    >>> pool.num_free
    2
    """

    def __init__(self, num_blocks: int, *, order: Sequence[int] | None = None) -> None:
        """Start with all blocks free; `order` says which are handed out first (0, 1, 2, ...)."""
        self.num_blocks = whole_number("num_blocks", num_blocks)
        first_out = list(range(self.num_blocks)) if order is None else list(order)
        if sorted(first_out) != list(range(self.num_blocks)):
            rule = f"must name each block from 0 to {self.num_blocks - 1} once"
            raise InvalidArgument("block_order", order, rule)
        self.free_block_ids = first_out[::-1]  # a stack: the last one goes first
        self.idle_block_ids: OrderedDict[int, None] = OrderedDict()  # left longest ago: first
        self.ref_count = [0] * self.num_blocks  # block tables that hold the block
        self.identity_of: list[object | None] = [None] * self.num_blocks  # by which it is found
        self.on_evict: Callable[[int], None] = _nothing
        self.num_evictions = self.peak_used = 0

    @property
    def num_free(self) -> int:
        """Blocks that can be taken: the free ones, and the idle ones, which are then evicted."""
        return len(self.free_block_ids) + len(self.idle_block_ids)

    @property
    def num_used(self) -> int:
        """Blocks that at least one block table holds."""
        return self.num_blocks - self.num_free

    def take(self, n: int) -> list[int]:
        """Return `n` blocks, each with one user; idle ones go only when no free one is left.

        Raises `OutOfBlocks`, and takes none, where there are fewer.
        """
        free, idle, ref_count = self.free_block_ids, self.idle_block_ids, self.ref_count
        if n > len(free) + len(idle):
            raise OutOfBlocks("the pool", needed=n, available=self.num_free)
        taken = free[: -n - 1 : -1]  # the stack from its top: at most as many as there are
        del free[len(free) - len(taken) :]
        while len(taken) < n:
            taken.append(self._evict())
        for block_id in taken:
            ref_count[block_id] = 1
        used = self.num_blocks - len(free) - len(idle)
        if used > self.peak_used:
            self.peak_used = used
        return taken

    def share(self, block_ids: Iterable[int]) -> None:
        """Count one more user for each block; an idle one is in use again."""
        ref_count, idle = self.ref_count, self.idle_block_ids
        for block_id in block_ids:
            if not ref_count[block_id]:
                if block_id not in idle:
                    raise InvalidArgument("block_id", block_id, "holds nothing that can be shared")
                del idle[block_id]
            ref_count[block_id] += 1
        self.peak_used = max(self.peak_used, self.num_used)

    def release(self, block_ids: Iterable[int]) -> None:
        """Count one user less for each block; without any it is free, or idle if it can be found.

        Name the last block of a chain first: what is left first is evicted first, and a block
        is of no use once the one before it is gone.
        """
        ref_count, identity_of, idle = self.ref_count, self.identity_of, self.idle_block_ids
        for block_id in block_ids:
            users = ref_count[block_id]
            if not users:
                raise InvalidArgument("block_id", block_id, "nobody uses it: released twice")
            ref_count[block_id] = users - 1
            if users == 1:
                if identity_of[block_id] is None:
                    self.free_block_ids.append(block_id)
                else:
                    idle[block_id] = None

    def grow(self, extra: int) -> None:
        """Add free blocks; the ids that follow are theirs."""
        first, self.num_blocks = self.num_blocks, self.num_blocks + whole_number("extra", extra)
        self.free_block_ids[:0] = range(self.num_blocks - 1, first - 1, -1)
        self.ref_count += [0] * extra
        self.identity_of += [None] * extra

    def drop_idle(self) -> int:
        """Evict every idle block; return how many there were."""
        count = len(self.idle_block_ids)
        self.free_block_ids += [self._evict() for _ in range(count)]
        return count

    def _evict(self) -> int:
        """Forget what is in the block that was left longest ago; return it."""
        block_id, _ = self.idle_block_ids.popitem(last=False)
        self.on_evict(block_id)
        self.num_evictions += 1
        return block_id


def _nothing(block_id: int) -> None:
    return None

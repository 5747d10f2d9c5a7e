"""Paged allocation as a whole: sequences come, grow, fork and go; blocks are shared and copied.

Pure bookkeeping: no keys, no values, no tensor. All of it is whole numbers in plain lists, and a
token that needs no new block costs one comparison. Left out: whom to admit, whom to preempt.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.paging.block_pool import BlockPool
from kvlab.paging.block_queries import SeqId, no_such
from kvlab.paging.block_steps import BlockSteps
from kvlab.paging.block_table import BlockTable
from kvlab.paging.events import EventLog
from kvlab.paging.prefix_index import Identity, PrefixIndex, TokenIds


class BlockManager(BlockSteps):
    """Block tables for many sequences over one pool of blocks; `BlockQueries` has the questions.

    Tokens are given as ids, or as a bare number where nobody knows the ids (nothing is shared
    then). Every method does all that it says, or raises and changes nothing.

    >>> manager = BlockManager(num_blocks=8, block_size=4)
    >>> manager.allocate("a", [1, 2, 3, 4, 5, 6])  # returns how many tokens were cached
    0
    >>> manager.append("a")
    >>> manager.block_table("a"), manager.num_tokens("a"), manager.num_free
    ([0, 1], 7, 6)
    >>> manager.commit("a", [1, 2, 3, 4, 5, 6, 7])  # computed: the full block may be shared
    >>> manager.allocate("b", [1, 2, 3, 4, 9])
    4
    >>> manager.block_table("b")
    [0, 2]
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        prefix_caching: bool = True,
        sliding_window: int | None = None,
        hash_block: Callable[[Identity], int] = hash,
        block_order: Sequence[int] | None = None,
        log: EventLog | None = None,
        pool: BlockPool | None = None,
    ) -> None:
        """Start with `num_blocks` free blocks of `block_size` tokens.

        prefix_caching: keep computed full blocks findable, also after their sequence has ended.
        sliding_window: the tokens that a query sees, itself included; older blocks are given back.
        block_order: the order in which fresh blocks are handed out. log: where to record events.
        pool: a pool shared with other managers (see `hybrid.py`), instead of one of its own.
        """
        self.block_size = whole_number("block_size", block_size)
        self.pool = BlockPool(num_blocks, order=block_order) if pool is None else pool
        if sliding_window is not None:
            whole_number("sliding_window", sliding_window)
            if prefix_caching:
                rule = "gives up blocks that a cached prefix needs; say prefix_caching=False"
                raise Unsupported(f"sliding_window={sliding_window}: {rule}")
        self.sliding_window, self.log = sliding_window, log
        self.tables: dict[SeqId, BlockTable] = {}
        self.counts = {"asked": 0, "hit": 0, "copied": 0, "merged": 0}
        self._copies: list[tuple[int, int]] = []
        self.index = PrefixIndex(self.pool.identity_of, hash_block) if prefix_caching else None
        if self.index is not None:
            self.pool.on_evict = self.index.forget if log is None else self._forget

    # -- a sequence comes and grows -------------------------------------------------------

    def allocate(
        self,
        seq_id: SeqId,
        tokens: TokenIds | int,
        *,
        num_new_tokens: int | None = None,
        extra_keys: Hashable = (),
    ) -> int:
        """Give a new sequence slots for its tokens; return how many tokens were cached.

        Cached blocks are shared, not taken. `num_new_tokens` limits the slots to the cached
        tokens and so many more: the first chunk of a long prompt. Raises `OutOfBlocks`.
        """
        if seq_id in self.tables:
            raise InvalidArgument("seq_id", seq_id, "this sequence is here already")
        hits = self._hits(tokens, extra_keys)
        end, needed, available = self._plan(tokens, hits, num_new_tokens)
        if needed > available:
            raise self._refusal(seq_id, needed, available)
        if hits:
            self.pool.share(hits)
        cached = len(hits) * self.block_size
        self.tables[seq_id] = table = BlockTable(hits + self.pool.take(needed), end, extra_keys)
        table.num_cached_tokens, table.num_committed = cached, len(hits)
        table.commit_at = cached + self.block_size
        table.room = self._room(table)
        if self.index is not None and not isinstance(tokens, int):
            self.counts["asked"] += len(tokens)
            self.counts["hit"] += cached
        if self.log is not None:
            self.log.arrived(seq_id, table, len(hits))
        return cached

    def append(
        self, seq_id: SeqId, num_new_tokens: int = 1, computed: TokenIds | None = None
    ) -> None:
        """Give a sequence slots for more tokens; with a window, first give back what left it.

        A part-full last block that others hold too is copied first (`copies`). `computed` are the
        tokens so far, if all are computed: full blocks are shared as by `commit`, in one call.
        Raises `OutOfBlocks`, and adds nothing, where the pool can't give enough.
        """
        try:
            table = self.tables[seq_id]
        except (KeyError, TypeError):
            raise no_such(seq_id) from None
        held = table.num_tokens
        end = held + num_new_tokens
        if held < end <= table.room and end.__class__ is int:
            table.num_tokens = end
        else:
            self._grow(seq_id, table, num_new_tokens, computed)

    def commit(self, seq_id: SeqId, tokens: TokenIds, num_computed: int | None = None) -> None:
        """Say that the first `num_computed` tokens (or all) are computed, so shareable.

        `tokens` are the sequence's from position 0 on. Nothing happens until one more block is
        full. Where another sequence computed the same block before, this one changes over to it
        and gives its own back: its table changes.
        """
        try:
            table = self.tables[seq_id]
        except (KeyError, TypeError):
            raise no_such(seq_id) from None
        computed = len(tokens) if num_computed is None else num_computed
        if computed >= table.commit_at or computed < 0:
            self._commit(seq_id, table, tokens, computed)

    def fork(self, parent_id: SeqId, child_id: SeqId) -> None:
        """Let a new sequence begin with all the tokens of another; no block is copied yet."""
        table = self._table(parent_id)
        if child_id in self.tables:
            raise InvalidArgument("child_id", child_id, "this sequence is here already")
        self.pool.share(table.held())
        self.tables[child_id] = twin = table.fork()
        table.room = twin.room = table.num_tokens  # the next append must look who owns the tail
        if self.log is not None:
            self.log.forked(parent_id, child_id, twin)

    # -- and goes -------------------------------------------------------------------------

    def truncate(self, seq_id: SeqId, num_tokens: int) -> None:
        """Keep the first `num_tokens` tokens and give back the blocks after them."""
        table = self._table(seq_id)
        n = whole_number("num_tokens", num_tokens, minimum=0)
        seen = 0 if self.sliding_window is None else max(0, n - self.sliding_window + 1)
        if n > table.num_tokens or seen < table.num_dropped * self.block_size:
            rule = f"{table.num_tokens} tokens are held, {table.num_dropped} blocks left the window"
            raise InvalidArgument("num_tokens", n, rule)
        kept = max(self.blocks_for(n), table.num_dropped)
        self.pool.release(reversed(table.block_ids[kept:]))
        del table.block_ids[kept:]
        table.num_committed = min(table.num_committed, n // self.block_size)
        table.num_tokens = table.room = n
        table.commit_at = (table.num_committed + 1) * self.block_size
        if self.log is not None:
            self.log.truncated(seq_id, table)

    def free(self, seq_id: SeqId) -> None:
        """Give back all that a sequence holds; its cached blocks stay findable until evicted."""
        table = self._table(seq_id)
        del self.tables[seq_id]
        held = table.held()
        held.reverse()  # the tail of the chain is evicted first
        self.pool.release(held)
        if self.log is not None:
            self.log.freed(seq_id, held, self.pool)

    def drop_unseen(self, seq_id: SeqId) -> None:
        """Give back the blocks that left the sliding window, if there is one; `append` does it."""
        self._give_back_unseen(seq_id, self._table(seq_id))

    def copies(self) -> list[tuple[int, int]]:
        """Return the block copies (from, to) not yet carried out, and count them as done.

        Carry them out in this order, before anything is written.
        """
        pairs, self._copies = self._copies, []
        return pairs

    def drop_idle(self) -> int:
        """Forget every cached block that no sequence uses; return how many there were."""
        return self.pool.drop_idle()

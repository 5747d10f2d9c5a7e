"""The small steps that `BlockManager` is made of: grow, copy a tail, publish or forget a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, OutOfBlocks
from kvlab.paging.block_queries import BlockQueries, SeqId
from kvlab.paging.block_table import DROPPED, BlockTable
from kvlab.paging.prefix_index import ROOT

if TYPE_CHECKING:
    from kvlab.paging.events import EventLog
    from kvlab.paging.prefix_index import TokenIds


class BlockSteps(BlockQueries):
    """Steps that each keep the rules of the pool; `BlockManager` puts them together."""

    log: EventLog | None
    _copies: list[tuple[int, int]]

    def _grow(self, seq_id: SeqId, table: BlockTable, n: int, computed: TokenIds | None) -> None:
        """Append the slow way: a new block, a copy of the tail, or blocks out of the window."""
        if n.__class__ is not int or n < 1:
            n = whole_number("num_new_tokens", n)
        if computed is not None:
            self._commit(seq_id, table, computed, table.num_tokens)
        if self.sliding_window is not None:
            self._give_back_unseen(seq_id, table)
        new, copied = self._growth(table, n)
        if copied:
            if new + copied > self.pool.num_free:
                raise self._refusal(seq_id, new + copied, self.pool.num_free)
            self._copy_tail(seq_id, table)
        try:
            taken = self.pool.take(new)
        except OutOfBlocks as short:
            raise self._refusal(seq_id, new, short.available) from None
        table.block_ids += taken
        table.num_tokens += n
        table.room = self._room(table)
        if self.log is not None:
            self.log.grew(seq_id, table, taken)

    def _room(self, table: BlockTable) -> int:
        """Return up to how many tokens an append needs no more than a comparison."""
        if self.log is not None:
            return table.num_tokens  # every token is recorded
        room = len(table.block_ids) * self.block_size
        if self.sliding_window is not None:
            leaving = (table.num_dropped + 1) * self.block_size  # when the next block is unseen
            room = min(room, leaving + self.sliding_window - 1)
        return room

    def _copy_tail(self, seq_id: SeqId, table: BlockTable) -> None:
        """Copy on write: take a block for the part-full tail that others still need as it is."""
        source = table.block_ids[-1]
        (target,) = self.pool.take(1)
        table.block_ids[-1] = target
        self.pool.release([source])
        self._copies.append((source, target))
        self.counts["copied"] += 1
        if self.log is not None:
            self.log.copied(seq_id, table, source, target)

    def _give_back_unseen(self, seq_id: SeqId, table: BlockTable) -> None:
        """Give back the blocks that no later token of the sequence can see."""
        first, end = table.num_dropped, self._out_of_window(table)
        if first == end:
            return
        gone = table.block_ids[first:end]
        self.pool.release(gone)
        table.block_ids[first:end] = [DROPPED] * len(gone)
        table.num_dropped = end
        if self.log is not None:
            self.log.dropped(seq_id, table, gone)

    def _commit(self, seq_id: SeqId, table: BlockTable, tokens: TokenIds, computed: int) -> None:
        """Publish the full blocks among the first `computed` tokens that are not published yet."""
        limit = min(table.num_tokens, len(tokens))
        if computed.__class__ is not int or computed < 0:
            computed = whole_number("num_computed", computed, minimum=0)
        if computed > limit:
            rule = f"must be at most {limit}, the tokens given that have slots"
            raise InvalidArgument("num_computed", computed, rule)
        if self.index is None:
            return
        size, ids, keys, add_or_find = (
            self.block_size, table.block_ids, table.extra_keys, self.index.add_or_find
        )  # fmt: skip
        done = table.num_committed
        parent = ids[done - 1] if done else ROOT
        first_open = computed // size
        if first_open > done + 1 and tokens.__class__ is list:
            tokens = tuple(tokens)  # one copy of all, instead of one more for each block
        for i in range(done, first_open):
            own, part = ids[i], tokens[i * size : (i + 1) * size]
            part = tuple(part) if part.__class__ is list else part
            parent = add_or_find(own, (parent, part, keys))
            if parent != own:
                if not self._change_over(seq_id, table, i, parent):
                    break
            elif self.log is not None:
                self.log.published(seq_id, table, i)
            done = i + 1
        table.num_committed, table.commit_at = done, (done + 1) * size

    def _change_over(self, seq_id: SeqId, table: BlockTable, i: int, known: int) -> bool:
        """Give back block `i` of a table for the block `known` that holds the same tokens.

        Two requests with one prompt may compute the same block at the same time. Keeping both
        would leave chains whose parts belong to different sequences; so the later one gives way.
        While a fork holds its block too it can't, or the fork's chain would break: False, later.
        """
        own = table.block_ids[i]
        if self.pool.ref_count[own] > 1:
            return False
        self.pool.share([known])
        table.block_ids[i] = known
        self.pool.release([own])
        self.counts["merged"] += 1
        if self.log is not None:
            self.log.merged(seq_id, table, own, known)
        return True

    def _forget(self, block_id: int) -> None:
        """Take an idle block out of the index: it will hold other tokens."""
        self.index.forget(block_id)
        if self.log is not None:
            self.log.evicted(block_id)

    def _refusal(self, seq_id: SeqId, needed: int, available: int) -> OutOfBlocks:
        if self.log is not None:
            self.log.refused(seq_id, needed, available)
        return OutOfBlocks(seq_id, needed=needed, available=available)

"""What one may ask a block manager. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.paging.block_table import BlockTable
from kvlab.paging.pool_stats import PoolStats, look_at

if TYPE_CHECKING:
    from kvlab.paging.block_pool import BlockPool
    from kvlab.paging.prefix_index import PrefixIndex, TokenIds

SeqId = Hashable


class BlockQueries:
    """The questions of `BlockManager`."""

    block_size: int
    sliding_window: int | None
    pool: BlockPool
    index: PrefixIndex | None
    tables: dict[SeqId, BlockTable]
    counts: dict[str, int]

    # -- the pool -------------------------------------------------------------------------

    @property
    def num_blocks(self) -> int:
        """Blocks in the pool."""
        return self.pool.num_blocks

    @property
    def num_free(self) -> int:
        """Blocks that can be taken now: free ones and idle cached ones."""
        return self.pool.num_free

    @property
    def num_used(self) -> int:
        """Blocks that some sequence holds; a shared one counts once."""
        return self.pool.num_used

    def blocks_for(self, num_tokens: int) -> int:
        """Return the blocks for so many tokens, the last one perhaps part full."""
        return -(-num_tokens // self.block_size)

    def stats(self) -> PoolStats:
        """Return one look at the pool and its counters."""
        return look_at(self.pool, len(self.tables), self.counts)

    # -- a request that has not come yet --------------------------------------------------

    def match_prefix(self, tokens: TokenIds | int, extra_keys: Hashable = ()) -> int:
        """Return how many tokens at the front of a prompt are computed already: whole blocks.

        At least one token is left to compute. True only until the next change: `allocate` looks
        again.
        """
        return len(self._hits(tokens, extra_keys)) * self.block_size

    def can_allocate(
        self,
        tokens: TokenIds | int,
        *,
        num_new_tokens: int | None = None,
        extra_keys: Hashable = (),
    ) -> bool:
        """Return whether `allocate` with the same arguments would find enough blocks."""
        hits = self._hits(tokens, extra_keys)
        _, needed, available = self._plan(tokens, hits, num_new_tokens)
        return needed <= available

    # -- a sequence -----------------------------------------------------------------------

    def __contains__(self, seq_id: SeqId) -> bool:
        return seq_id in self.tables

    def num_tokens(self, seq_id: SeqId) -> int:
        """Return the tokens for which the sequence has slots."""
        return self._table(seq_id).num_tokens

    def num_committed_tokens(self, seq_id: SeqId) -> int:
        """Return the tokens at the front whose blocks are computed, full and shareable."""
        return self._table(seq_id).num_committed * self.block_size

    def block_table(self, seq_id: SeqId) -> list[int]:
        """Return the sequence's block ids in token order; -1 where one fell out of the window."""
        return list(self._table(seq_id).block_ids)

    def slot_mapping(self, seq_id: SeqId, start: int, end: int) -> list[int]:
        """Return block_id x block_size + offset of each position from start to end - 1."""
        return self._table(seq_id).slots(start, end, self.block_size)

    def blocks_needed(self, seq_id: SeqId, num_new_tokens: int = 1) -> int:
        """Return the blocks that `append` would take: new ones, and one to copy a shared tail."""
        table = self._table(seq_id)
        return sum(self._growth(table, whole_number("num_new_tokens", num_new_tokens)))

    def can_append(self, seq_id: SeqId, num_new_tokens: int = 1) -> bool:
        """Return whether `append` with the same arguments would find enough blocks."""
        try:
            table = self.tables[seq_id]
        except (KeyError, TypeError):
            raise no_such(seq_id) from None
        if 0 < num_new_tokens <= table.room - table.num_tokens:
            return True
        if self.sliding_window is None:
            pool = self.pool
            if num_new_tokens == 1 and len(pool.free_block_ids) + len(pool.idle_block_ids) > 1:
                return True  # one token takes a new block or a copy, never both
            return self.blocks_needed(seq_id, num_new_tokens) <= pool.num_free
        leaving = table.block_ids[table.num_dropped : self._out_of_window(table)]
        given_back = sum(self.pool.ref_count[block_id] == 1 for block_id in leaving)
        return self.blocks_needed(seq_id, num_new_tokens) <= self.num_free + given_back

    def may_write(self, block_id: int) -> bool:
        """Return whether the one sequence that holds a block may write to it.

        It may not where another one holds it too, or where it can be found and shared.
        """
        return self.pool.ref_count[block_id] == 1 and self.pool.identity_of[block_id] is None

    # -- how the answers are found --------------------------------------------------------

    def _table(self, seq_id: SeqId) -> BlockTable:
        try:
            return self.tables[seq_id]
        except (KeyError, TypeError):
            raise no_such(seq_id) from None

    def _hits(self, tokens: TokenIds | int, extra_keys: Hashable) -> list[int]:
        try:
            hash(extra_keys)
        except TypeError:
            raise InvalidArgument("extra_keys", extra_keys, "must be hashable") from None
        if self.index is None or isinstance(tokens, int):
            return []
        check_tokens(tokens)
        return self.index.longest_match(tokens, self.block_size, extra_keys)

    def _plan(
        self, tokens: TokenIds | int, hits: Sequence[int], num_new_tokens: int | None
    ) -> tuple[int, int, int]:
        """Return (tokens to hold, blocks to take, blocks that can be taken) of an `allocate`."""
        if isinstance(tokens, int):
            end = whole_number("number of tokens", tokens, minimum=0)
        else:
            end = len(check_tokens(tokens))
        if num_new_tokens is not None:
            new = whole_number("num_new_tokens", num_new_tokens, minimum=0)
            end = min(end, len(hits) * self.block_size + new)
        available, ref_count = self.pool.num_free, self.pool.ref_count
        for block_id in hits:
            available -= not ref_count[block_id]  # an idle hit can't be taken by anybody else
        return end, -(-end // self.block_size) - len(hits), available

    def _growth(self, table: BlockTable, num_new_tokens: int) -> tuple[int, int]:
        """Return (new blocks, 1 if the tail must be copied first) of an `append`."""
        ids, size, held = table.block_ids, self.block_size, table.num_tokens
        copied = held % size > 0 and not self.may_write(ids[-1])
        return -(-(held + num_new_tokens) // size) - len(ids), int(copied)

    def _out_of_window(self, table: BlockTable) -> int:
        """Return how many blocks at the front the next token can't see any more."""
        if self.sliding_window is None:
            return 0
        first_seen = max(0, table.num_tokens - self.sliding_window + 1)
        return max(table.num_dropped, min(first_seen // self.block_size, len(table.block_ids)))


def no_such(seq_id: SeqId) -> InvalidArgument:
    """Return the error for a sequence that the manager does not know."""
    return InvalidArgument("seq_id", seq_id, "no such sequence is here")


def check_tokens(tokens: object) -> TokenIds:
    """Return the tokens if they are a sequence; a set or a tensor can't be looked up."""
    if tokens.__class__ is not list and not isinstance(tokens, Sequence):
        rule = "must be a list of token ids, or their number"
        raise InvalidArgument("tokens", type(tokens).__name__, rule)
    return tokens

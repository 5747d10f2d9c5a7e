"""What a block manager did, step by step, each step with a sentence: for a picture or a log.

An event tells enough to play the story forwards (`replay.py`). A manager without a log spends
nothing on it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvlab.paging.block_pool import BlockPool
    from kvlab.paging.block_table import BlockTable

KINDS = (
    "arrive", "share", "allocate", "grow", "fork", "copy", "cache", "merge",
    "drop", "evict", "truncate", "free", "refuse", "reserve",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One step. `block_ids` are the blocks it is about.

    `num_tokens` are the sequence's tokens afterwards, `table` its block table; None: unchanged.
    """

    kind: str
    seq_id: Hashable
    block_ids: tuple[int, ...]
    num_tokens: int
    words: str
    table: Sequence[int] | None = None


class EventLog:
    """A list of events, written by a `BlockManager` that was given it.

    >>> from kvlab.paging import BlockManager
    >>> log = EventLog()
    >>> manager = BlockManager(num_blocks=4, block_size=4, log=log)
    >>> _ = manager.allocate("a", 6)
    >>> manager.append("a", 3)
    >>> [event.words for event in log.events]
    ['a arrives with 6 tokens', 'a gets blocks 0, 1', 'a has 9 tokens now and gets block 2']
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def arrived(self, seq_id: Hashable, table: BlockTable, num_hits: int) -> None:
        """A sequence came; its first `num_hits` blocks were found in the prefix index."""
        n, hits, new = table.num_tokens, table.block_ids[:num_hits], table.block_ids[num_hits:]
        self._add("arrive", seq_id, (), n, f"{seq_id} arrives with {count(n, 'token')}")
        if hits:
            saved = count(table.num_cached_tokens, "token")
            words = f"{seq_id} shares {blocks(hits)}: {saved} need not be computed"
            self._add("share", seq_id, hits, table.num_cached_tokens, words, hits)
        if new:
            self._add("allocate", seq_id, new, n, f"{seq_id} gets {blocks(new)}", table.block_ids)

    def grew(self, seq_id: Hashable, table: BlockTable, taken: Sequence[int]) -> None:
        """Tokens were appended; `taken` are the new blocks, if any."""
        words = f"{seq_id} has {count(table.num_tokens, 'token')} now"
        words += f" and gets {blocks(taken)}" if taken else ""
        after = table.block_ids if taken else None
        self._add("grow", seq_id, taken, table.num_tokens, words, after)

    def forked(self, parent_id: Hashable, child_id: Hashable, child: BlockTable) -> None:
        """A sequence began as the twin of another."""
        words = f"{child_id} forks from {parent_id}: both hold {blocks(child.held())}"
        self._add("fork", child_id, child.held(), child.num_tokens, words, child.block_ids)

    def copied(self, seq_id: Hashable, table: BlockTable, source: int, target: int) -> None:
        """A part-full block was copied before a write."""
        words = f"{seq_id} must not write to shared block {source}: it copies it to block {target}"
        self._add("copy", seq_id, (source, target), table.num_tokens, words, table.block_ids)

    def published(self, seq_id: Hashable, table: BlockTable, i: int) -> None:
        """Block `i` of a table became findable."""
        block_id = table.block_ids[i]
        words = f"block {block_id} of {seq_id} is full and computed: others may share it"
        self._add("cache", seq_id, (block_id,), table.num_tokens, words)

    def merged(self, seq_id: Hashable, table: BlockTable, own: int, known: int) -> None:
        """A sequence gave up a block of its own for one that holds the same."""
        words = f"block {known} already holds the same tokens: {seq_id} gives back block {own}"
        self._add("merge", seq_id, (own, known), table.num_tokens, words, table.block_ids)

    def dropped(self, seq_id: Hashable, table: BlockTable, gone: Sequence[int]) -> None:
        """Blocks fell out of the sliding window."""
        words = f"{seq_id} gives back {blocks(gone)}: out of the window"
        self._add("drop", seq_id, gone, table.num_tokens, words, table.block_ids)

    def evicted(self, block_id: int) -> None:
        """An idle cached block was forgotten, because somebody needs room."""
        words = f"block {block_id} was idle the longest: what it holds is forgotten"
        self._add("evict", None, (block_id,), 0, words)

    def truncated(self, seq_id: Hashable, table: BlockTable) -> None:
        """The last tokens were taken back."""
        words = f"{seq_id} goes back to {count(table.num_tokens, 'token')}"
        self._add("truncate", seq_id, (), table.num_tokens, words, table.block_ids)

    def freed(self, seq_id: Hashable, held: Sequence[int], pool: BlockPool) -> None:
        """A sequence ended; `held` are the blocks it gave back, last one first."""
        idle = sorted(block_id for block_id in held if block_id in pool.idle_block_ids)
        words = f"{seq_id} ends and gives back {blocks(sorted(held))}"
        words += f"; still cached: {blocks(idle)}" if idle else ""
        self._add("free", seq_id, held, 0, words, ())

    def reserved(self, seq_id: Hashable, slots: range, num_tokens: int) -> None:
        """A sequence came to a contiguous allocator and got one piece."""
        words = f"{seq_id} arrives with {count(num_tokens, 'token')}"
        words += f" and reserves slots {slots.start:,} to {slots.stop - 1:,}"
        self._add("reserve", seq_id, (), num_tokens, words, slots)

    def filled(self, seq_id: Hashable, num_tokens: int) -> None:
        """Tokens were appended to a contiguous piece."""
        words = f"{seq_id} has {count(num_tokens, 'token')} now"
        self._add("grow", seq_id, (), num_tokens, words)

    def emptied(self, seq_id: Hashable, slots: range) -> None:
        """A sequence gave its contiguous piece back."""
        words = f"{seq_id} ends and gives back {count(len(slots), 'slot')}"
        self._add("free", seq_id, (), 0, words, ())

    def too_long(self, seq_id: Hashable, wanted: int, longest: int, free: int) -> None:
        """No hole is long enough."""
        words = f"{seq_id} wants {wanted:,} slots in one piece; {free:,} are free,"
        words += f" the longest piece has {longest:,}"
        self._add("refuse", seq_id, (), 0, words)

    def refused(self, seq_id: Hashable, needed: int, available: int) -> None:
        """A request could not be met."""
        words = f"{seq_id} needs {count(needed, 'block')}, the pool has {available}"
        self._add("refuse", seq_id, (), 0, words)

    def _add(
        self,
        kind: str,
        seq_id: Hashable,
        block_ids: Sequence[int],
        num_tokens: int,
        words: str,
        table: Sequence[int] | None = None,
    ) -> None:
        after = table if table is None or isinstance(table, range) else tuple(table)
        self.events.append(Event(kind, seq_id, tuple(block_ids), num_tokens, words, after))


def blocks(block_ids: Sequence[int]) -> str:
    """Return the blocks in words.

    >>> blocks([3]), blocks([1, 2]), blocks([])
    ('block 3', 'blocks 1, 2', 'no block')
    """
    if not block_ids:
        return "no block"
    return ("block " if len(block_ids) == 1 else "blocks ") + ", ".join(map(str, block_ids))


def count(n: int, thing: str) -> str:
    """Return a number with its noun: 1 token, 2 tokens."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def letter(number: int) -> str:
    """Return the letter of a request: A for 0.

    >>> letter(1), letter(26)
    ('B', 'A2')
    """
    turn, place = divmod(number, 26)
    return chr(ord("A") + place) + (str(turn + 1) if turn else "")

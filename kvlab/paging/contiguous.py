"""The allocator that paging replaced: one piece of memory for each sequence, reserved at the start.

It answers the same calls as `BlockManager`, so that both can serve the same stream of requests. Its
blocks are single slots. Nothing is shared; a fork copies every token.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import CacheFull, InvalidArgument, OutOfBlocks
from kvlab.paging.block_queries import SeqId, no_such
from kvlab.paging.events import EventLog
from kvlab.paging.prefix_index import TokenIds

POLICIES = ("max", "pow2", "exact")


@dataclass(slots=True)
class Reservation:
    """One piece of memory: its first slot, its length in slots, and the tokens in it."""

    start: int
    length: int
    num_tokens: int


class ContiguousManager:
    """Reserve slots for whole sequences, each in one piece, where the first large hole is.

    policy: "max" reserves `max_seq_len` slots for everybody. "exact" reserves what the sequence
    will need in the end and "pow2" the next power of two: both must know `final_length`.

    >>> manager = ContiguousManager(100, max_seq_len=40)
    >>> _ = manager.allocate("a", 10)
    >>> manager.num_free, manager.slot_mapping("a", 8, 10)
    (60, [8, 9])
    """

    block_size = 1

    def __init__(
        self,
        num_slots: int,
        max_seq_len: int,
        *,
        policy: str = "max",
        final_length: Callable[[SeqId], int] | None = None,
        log: EventLog | None = None,
    ) -> None:
        """`final_length(seq_id)` is the number of tokens a sequence will have when it ends."""
        self.num_blocks = whole_number("num_slots", num_slots)
        self.max_seq_len = whole_number("max_seq_len", max_seq_len)
        if policy not in POLICIES:
            raise InvalidArgument("policy", policy, f"must be one of {', '.join(POLICIES)}")
        if policy != "max" and final_length is None:
            raise InvalidArgument("final_length", None, f"policy {policy!r} must know it")
        self.policy, self.final_length, self.log = policy, final_length, log
        self.holes: list[tuple[int, int]] = [(0, self.num_blocks)]  # (start, length), in order
        self.reservations: dict[SeqId, Reservation] = {}
        self._copies: list[tuple[int, int]] = []

    # -- what one may ask -----------------------------------------------------------------

    @property
    def num_free(self) -> int:
        """Slots that nobody has reserved, in holes of any length."""
        return sum(length for _, length in self.holes)

    @property
    def num_used(self) -> int:
        """Slots reserved, whether or not tokens fill them."""
        return self.num_blocks - self.num_free

    def __contains__(self, seq_id: SeqId) -> bool:
        return seq_id in self.reservations

    def num_tokens(self, seq_id: SeqId) -> int:
        """Return the tokens that a sequence holds."""
        return self._of(seq_id).num_tokens

    def slots_reserved(self, num_tokens: int, seq_id: SeqId = None) -> int:
        """Return the slots that a sequence with so many tokens would reserve."""
        length = self.max_seq_len
        if self.policy != "max" and self.final_length is not None:
            length = max(num_tokens, self.final_length(seq_id))
            if self.policy == "pow2":
                length = 1 << (length - 1).bit_length()
        return length

    def match_prefix(self, tokens: TokenIds | int, extra_keys: Hashable = ()) -> int:
        """Return 0: memory in one piece can't be shared."""
        return 0

    def can_allocate(self, tokens: TokenIds | int, *, seq_id: SeqId = None) -> bool:
        """Return whether one hole is long enough for the reservation."""
        wanted = self.slots_reserved(_number_of(tokens), seq_id)
        return any(length >= wanted for _, length in self.holes)

    def can_append(self, seq_id: SeqId, num_new_tokens: int = 1) -> bool:
        """Return whether the reservation has room for more tokens."""
        held = self._of(seq_id)
        return held.num_tokens + num_new_tokens <= held.length

    def slot_mapping(self, seq_id: SeqId, start: int, end: int) -> list[int]:
        """Return the slot of each position from start to end - 1: simply one after another."""
        held = self._of(seq_id)
        if not 0 <= start <= end <= held.num_tokens:
            rule = f"positions 0 to {held.num_tokens} are held"
            raise InvalidArgument("start, end", (start, end), rule)
        return list(range(held.start + start, held.start + end))

    # -- a sequence comes, grows and goes -------------------------------------------------

    def allocate(self, seq_id: SeqId, tokens: TokenIds | int, *, extra_keys: Hashable = ()) -> int:
        """Reserve one piece for a new sequence; return 0, the tokens that were cached.

        Raises `OutOfBlocks` where no hole is long enough, even if many short ones are free.
        """
        if seq_id in self.reservations:
            raise InvalidArgument("seq_id", seq_id, "this sequence is here already")
        n = _number_of(tokens)
        wanted = self.slots_reserved(n, seq_id)
        if n > wanted:
            raise InvalidArgument("number of tokens", n, f"must be at most {wanted}, max_seq_len")
        for i, (start, length) in enumerate(self.holes):
            if length >= wanted:
                rest = [(start + wanted, length - wanted)] if length > wanted else []
                self.holes[i : i + 1] = rest
                self.reservations[seq_id] = Reservation(start, wanted, n)
                if self.log is not None:
                    self.log.reserved(seq_id, range(start, start + wanted), n)
                return 0
        longest = max((length for _, length in self.holes), default=0)
        if self.log is not None:
            self.log.too_long(seq_id, wanted, longest, self.num_free)
        raise OutOfBlocks(seq_id, needed=wanted, available=longest)

    def append(self, seq_id: SeqId, num_new_tokens: int = 1) -> None:
        """Fill slots that were reserved; `CacheFull` where there are no more."""
        held = self._of(seq_id)
        n = whole_number("num_new_tokens", num_new_tokens)
        if held.num_tokens + n > held.length:
            raise CacheFull(f"seq_id={seq_id!r}: all {held.length} slots it reserved are full")
        held.num_tokens += n
        if self.log is not None:
            self.log.filled(seq_id, held.num_tokens)

    def fork(self, parent_id: SeqId, child_id: SeqId) -> None:
        """Reserve another piece and copy every token into it."""
        n = self.num_tokens(parent_id)
        self.allocate(child_id, n)
        slots = (self.slot_mapping(seq_id, 0, n) for seq_id in (parent_id, child_id))
        self._copies += zip(*slots, strict=True)

    def copies(self) -> list[tuple[int, int]]:
        """Return the slot copies (from, to) not yet carried out, and count them as done."""
        pairs, self._copies = self._copies, []
        return pairs

    def commit(self, seq_id: SeqId, tokens: TokenIds, num_computed: int | None = None) -> None:
        """Do nothing: there is nobody to share with."""

    def free(self, seq_id: SeqId) -> None:
        """Give the piece back and join it with the holes beside it."""
        held = self._of(seq_id)
        del self.reservations[seq_id]
        insort(self.holes, (held.start, held.length))
        joined: list[tuple[int, int]] = []
        for start, length in self.holes:
            if joined and sum(joined[-1]) == start:
                start, length = joined[-1][0], joined.pop()[1] + length
            joined.append((start, length))
        self.holes = joined
        if self.log is not None:
            self.log.emptied(seq_id, range(held.start, held.start + held.length))

    def _of(self, seq_id: SeqId) -> Reservation:
        if seq_id not in self.reservations:
            raise no_such(seq_id)
        return self.reservations[seq_id]


def _number_of(tokens: TokenIds | int) -> int:
    total = tokens if isinstance(tokens, int) else len(tokens)
    return whole_number("number of tokens", total, minimum=0)

"""Play recorded events forwards and backwards: what every block was doing after any step."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.paging.events import Event

KEYFRAME_EVERY = 64
"""Whole states are kept this far apart; a step back costs at most so many events."""


@dataclass(slots=True)
class PoolState:
    """Who holds what after some step.

    tables: block ids of each sequence, in token order, -1 where one fell out of the window.
    num_tokens: the tokens of each sequence. cached: blocks that the prefix index can find.
    """

    tables: dict[Hashable, Sequence[int]] = field(default_factory=dict)
    num_tokens: dict[Hashable, int] = field(default_factory=dict)
    cached: set[int] = field(default_factory=set)

    def owners(self) -> dict[int, list[Hashable]]:
        """Return for each block in use the sequences that hold it."""
        found: dict[int, list[Hashable]] = {}
        for seq_id, table in self.tables.items():
            for block_id in table:
                if block_id >= 0:
                    found.setdefault(block_id, []).append(seq_id)
        return found

    def filled(self, block_size: int) -> dict[int, int]:
        """Return for each block in use how many of its slots hold a token."""
        found: dict[int, int] = {}
        for seq_id, table in self.tables.items():
            for i, block_id in enumerate(table):
                tokens = min(block_size, max(0, self.num_tokens[seq_id] - i * block_size))
                if block_id >= 0:
                    found[block_id] = max(tokens, found.get(block_id, 0))
        return found

    def idle(self) -> set[int]:
        """Return the cached blocks that no sequence holds."""
        return self.cached - self.owners().keys()

    def apply(self, event: Event) -> None:
        """Become the state after one more event."""
        if event.kind == "free":
            self.tables.pop(event.seq_id, None)
            self.num_tokens.pop(event.seq_id, None)
        elif event.kind == "cache":
            self.cached.update(event.block_ids)
        elif event.kind == "evict":
            self.cached.difference_update(event.block_ids)
        elif event.kind != "refuse":
            self.num_tokens[event.seq_id] = event.num_tokens
            if event.table is not None:
                self.tables[event.seq_id] = event.table
            self.tables.setdefault(event.seq_id, ())

    def copy(self) -> PoolState:
        """Return a state of its own."""
        return PoolState(dict(self.tables), dict(self.num_tokens), set(self.cached))


class Replay:
    """The states of a recorded story, any of them at once.

    >>> from kvlab.paging import BlockManager, EventLog
    >>> manager = BlockManager(num_blocks=4, block_size=4, log=(log := EventLog()))
    >>> _ = manager.allocate("a", 6)
    >>> manager.free("a")
    >>> replay = Replay(log.events)
    >>> len(replay), replay.at(2).tables, replay.at(3).tables
    (3, {'a': (0, 1)}, {})
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = list(events)
        state, self._keyframes = PoolState(), [PoolState()]
        for number, event in enumerate(self.events, 1):
            state.apply(event)
            if number % KEYFRAME_EVERY == 0:
                self._keyframes.append(state.copy())

    def __len__(self) -> int:
        return len(self.events)

    def at(self, step: int) -> PoolState:
        """Return the state after the first `step` events, 0 to all of them."""
        number = whole_number("step", step, minimum=0)
        if number > len(self.events):
            raise InvalidArgument("step", step, f"the story has {len(self.events)} events")
        keyframe = number // KEYFRAME_EVERY
        state = self._keyframes[keyframe].copy()
        for event in self.events[keyframe * KEYFRAME_EVERY : number]:
            state.apply(event)
        return state

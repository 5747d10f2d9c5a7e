"""Play a recorded story of a block pool: the memory map, the block table, and each event in words.

Any step is at hand at once, so 10,000 events play as smoothly as ten. Large pools are drawn as
cells that show how full their slots are.
"""

from collections.abc import Hashable, Sequence

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.figures.blocks import Block, block_map
from kvlab.figures.palette import request_letter
from kvlab.figures.slot_map import CELLS_IN_ROW, slot_map
from kvlab.figures.svg import Picture
from kvlab.paging.events import Event
from kvlab.paging.pieces import Piece
from kvlab.paging.replay import PoolState, Replay
from kvlab.widgets.base import Frame
from kvlab.widgets.player import StepPlayer

MAX_BLOCKS, MAX_ROWS, COARSE_ROWS = 119, 12, 8
"""Blocks drawn one by one; rows of a block table that are shown; rows of cells otherwise."""

_READING = (
    "A letter is a request; two letters share a block. Filled from the bottom, hatched: empty."
)
_COARSE = "Too many blocks to draw: each cell is a stretch of them, filled as far as tokens are."


class BlockStory:
    """A story of events with a picture for each step; step n shows the pool after n events.

    `letters` gives each sequence its letter, in order; without it, in the order of arrival.
    """

    def __init__(
        self,
        events: Sequence[Event],
        *,
        num_blocks: int,
        block_size: int,
        letters: Sequence[Hashable] = (),
        scale: float = 1.0,
    ) -> None:
        if not events:
            raise InvalidArgument("events", events, "must hold at least one")
        self.replay, self.scale = Replay(events), scale
        self.num_blocks = whole_number("num_blocks", num_blocks)
        self.block_size = whole_number("block_size", block_size)
        self.number: dict[Hashable, int] = {seq_id: i for i, seq_id in enumerate(letters)}
        for event in self.replay.events:
            if event.seq_id is not None:
                self.number.setdefault(event.seq_id, len(self.number))

    def frame(self, step: int) -> Frame:
        """Return the pool after the first `step` events; 0 is the empty pool."""
        state = self.replay.at(step)
        event = self.replay.events[step - 1] if step else None
        words = self._words(event) if event else "nothing has come yet"
        owners, filled = state.owners(), state.filled(self.block_size)
        if self.num_blocks > MAX_BLOCKS:
            picture: Picture = self._coarse(filled)
        else:
            picture = self._map(state, owners, filled, event)
        slots = len(filled) * self.block_size
        held = sum(filled.values())
        numbers = {
            "event": f"{step:,} of {len(self.replay):,}",
            "sequences": f"{len(state.tables)}",
            "blocks in use": f"{len(owners)} of {self.num_blocks}",
            "shared": f"{sum(len(holders) > 1 for holders in owners.values())}",
            "slots with a token": f"{held:,} of {slots:,}",
            "waste of slots taken": f"{1 - held / slots:.1%}" if slots else "none taken",
        }
        return Frame(picture, numbers, words)

    def _words(self, event: Event) -> str:
        """The event in words, with the letter of the picture for a sequence that has a number."""
        if isinstance(event.seq_id, int) and event.words.startswith(f"{event.seq_id} "):
            return request_letter(self.number[event.seq_id]) + event.words[len(str(event.seq_id)) :]
        return event.words

    def _map(
        self,
        state: PoolState,
        owners: dict[int, list[Hashable]],
        filled: dict[int, int],
        event: Event | None,
    ) -> Picture:
        made = []
        for block_id in range(self.num_blocks):
            holders = tuple(sorted(self.number[s] for s in owners.get(block_id, ())))
            made.append(Block(block_id, holders, filled.get(block_id, 0)))
        shown = self._whose_table(state, event)
        table = [] if shown is None else [b for b in state.tables[shown] if b >= 0]
        more = f" Block table: the first {MAX_ROWS} of {len(table)} rows."
        return block_map(
            made,
            block_size=self.block_size,
            table_of=None if shown is None else self.number[shown],
            table=table[:MAX_ROWS],
            fresh=event.block_ids if event else (),
            title="One pool of blocks",
            reading=_READING + (more if len(table) > MAX_ROWS else ""),
            scale=self.scale,
        )

    def _whose_table(self, state: PoolState, event: Event | None) -> Hashable | None:
        """The sequence of the event, or the last one that is still there."""
        if event is not None and event.seq_id in state.tables:
            return event.seq_id
        return next(reversed(state.tables), None)

    def _coarse(self, filled: dict[int, int]) -> Picture:
        size = self.block_size
        pieces = [Piece((0,), b * size, size, tokens) for b, tokens in filled.items()]
        in_row = CELLS_IN_ROW * -(-self.num_blocks // (CELLS_IN_ROW * COARSE_ROWS))
        return slot_map(
            pieces, num_slots=self.num_blocks * size, row_slots=in_row * size, reading=_COARSE,
            title=f"One pool of {self.num_blocks:,} blocks", scale=self.scale, coarse=True,
        )  # fmt: skip


def block_player(
    events: Sequence[Event],
    *,
    num_blocks: int,
    block_size: int,
    start: int | None = None,
    letters: Sequence[Hashable] = (),
    interval_seconds: float = 1.2,
    scale: float = 1.0,
) -> StepPlayer:
    """Return the player of a story that an `EventLog` recorded; `start` is the last step if None.

    >>> from kvlab.paging import BlockManager, EventLog
    >>> manager = BlockManager(num_blocks=4, block_size=4, log=(log := EventLog()))
    >>> _ = manager.allocate("A", 6)
    >>> player = block_player(log.events, num_blocks=4, block_size=4)
    >>> player.numbers["slots with a token"], player.frame.event
    ('6 of 8', 'A gets blocks 0, 1')
    """
    story = BlockStory(
        events, num_blocks=num_blocks, block_size=block_size, letters=letters, scale=scale
    )
    last = len(story.replay)
    return StepPlayer(
        story.frame,
        last + 1,
        kind="block-player",
        start=last if start is None else start,
        name="event",
        interval_seconds=interval_seconds,
    )

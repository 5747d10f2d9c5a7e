"""Contiguous against paged on one stream of requests, step by step, until one of them refuses."""

from collections.abc import Mapping
from functools import lru_cache

import ipywidgets as widgets

from kvlab.figures.allocators import Lane, allocators
from kvlab.figures.palette import request_letter
from kvlab.paging.block_manager import BlockManager
from kvlab.paging.contiguous import ContiguousManager
from kvlab.paging.stream import StreamRequest, StreamStep, make_stream, run_stream
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import button, dropdown, powers, set_range
from kvlab.widgets.player import StepPlayer

NUM_SLOTS, LONGEST, ROW_SLOTS, COUNT = 1024, 256, 128, 24

STREAMS: Mapping[str, Mapping[str, float]] = {
    "a few long, many short": {"mean_prompt": 40, "mean_output": 60, "spread": 0.8, "every": 4},
    "all alike": {"mean_prompt": 40, "mean_output": 60, "spread": 0, "every": 4},
    "long prompts, short answers": {
        "mean_prompt": 110, "mean_output": 16, "spread": 0.5, "every": 4,
    },
    "short prompts, long answers": {
        "mean_prompt": 12, "mean_output": 110, "spread": 0.5, "every": 4,
    },
}  # fmt: skip
"""Length distributions: means in tokens, spread of a lognormal, a request each so many steps."""

POLICIES = {
    "the longest allowed": "max",
    "next power of two, length known": "pow2",
    "the exact length, known": "exact",
}
_READING = "Each row is a stretch of one memory, to scale; a letter is a request."


def race_steps(
    lengths: str, policy: str, block_size: int
) -> tuple[tuple[StreamStep, ...], tuple[StreamStep, ...]]:
    """Return the steps of both allocators on a stream: one piece each, and blocks.

    >>> pieces, blocks = race_steps("a few long, many short", "max", 16)
    >>> first_refusal(pieces) < first_refusal(blocks)
    True
    """
    return _steps_in_pieces(lengths, policy), _steps_in_blocks(lengths, block_size)


@lru_cache(maxsize=16)
def _stream(lengths: str) -> list[StreamRequest]:
    return make_stream(COUNT, longest=LONGEST, seed=6, **STREAMS[lengths])  # type: ignore[arg-type]


@lru_cache(maxsize=16)
def _steps_in_pieces(lengths: str, policy: str) -> tuple[StreamStep, ...]:
    final = {request.number: request.final_length for request in _stream(lengths)}
    one = ContiguousManager(NUM_SLOTS, LONGEST, policy=policy, final_length=final.__getitem__)
    return tuple(run_stream(one, _stream(lengths)))


@lru_cache(maxsize=36)
def _steps_in_blocks(lengths: str, block_size: int) -> tuple[StreamStep, ...]:
    paged = BlockManager(NUM_SLOTS // block_size, block_size, prefix_caching=False)
    return tuple(run_stream(paged, _stream(lengths)))


def _run_ahead(lengths: str) -> None:
    """Run the longest of what one move of a control may ask for, so that no move waits for two."""
    for stream in STREAMS:
        _steps_in_pieces(stream, "max")
    for size in (1, 2):  # the most blocks to look after
        _steps_in_blocks(lengths, size)


def first_refusal(steps: tuple[StreamStep, ...]) -> int:
    """Return the first step after which a request waits; the last step where none ever does."""
    return next((step.step for step in steps if step.waiting), len(steps) - 1)


def race_frame(
    lengths: str, policy: str, block_size: int, step: int, *, scale: float = 1.0
) -> Frame:
    """Return both memories after a step, and what happened in it."""
    pair = race_steps(lengths, policy, block_size)
    now = [steps[min(step, len(steps) - 1)] for steps in pair]
    names = ("one piece each", f"blocks of {block_size}")
    lanes = [
        Lane(name, look.pieces, _numbers(look), _waits(look), LONGEST if policy == "max" else 0)
        for name, look in zip(names, now, strict=True)
    ]
    lanes[1] = Lane(names[1], now[1].pieces, lanes[1].numbers, lanes[1].refuses)
    picture = allocators(
        lanes, num_slots=NUM_SLOTS, row_slots=ROW_SLOTS, reading=_READING, scale=scale,
        title=f"The same requests, twice: {NUM_SLOTS:,} slots, at most {LONGEST} tokens each",
    )  # fmt: skip
    numbers = {
        f"{name}: {key}": value
        for name, lane in zip(("contiguous", "paged"), lanes, strict=True)
        for key, value in lane.numbers.items()
    }
    said = f"Step {step}. One piece each: {_words(now[0], step)}. Blocks: {_words(now[1], step)}."
    return Frame(picture, numbers, said, numbers_in_picture=True)


def _words(look: StreamStep, step: int) -> str:
    return look.words if look.step == step else "all done"


def _waits(look: StreamStep) -> str:
    if not look.waiting:
        return ""
    return f"refuses {request_letter(look.waiting[0])}: {len(look.waiting)} waiting"


def _numbers(look: StreamStep) -> dict[str, str]:
    use = look.use
    return {
        "running batch": f"{len(look.running)}",
        "finished": f"{look.finished} of {COUNT}",
        "tokens written": f"{look.tokens_written:,}",
        "reserved, will be used": f"{use.reserved:,} slots",
        "internal, never used": f"{use.internal:,} slots",
        "external, too short": f"{use.external:,} slots",
        "waste of slots taken": f"{use.wasted_share:.1%}",
        "preempted so far": f"{look.preempted}",
    }


class AllocationRace(StepPlayer):
    """The race; controls are `lengths`, `policy`, `block_size` and `step`."""

    def __init__(self, *, block_size: int = 16, scale: float = 1.0) -> None:
        lengths = next(iter(STREAMS))
        _run_ahead(lengths)
        pair = race_steps(lengths, "max", block_size)

        def draw(**values: object) -> Frame:
            return race_frame(**values, scale=scale)  # type: ignore[arg-type]

        others: dict[str, widgets.Widget] = {
            "lengths": dropdown("requests", list(STREAMS), lengths),
            "policy": dropdown("one piece of", list(POLICIES.items()), "max"),
            "block_size": powers("block size, tokens", block_size, 1, 256, width="300px"),
        }
        last = max(len(steps) for steps in pair)
        start = first_refusal(pair[0])
        super().__init__(
            draw, last, kind="allocation-race", start=start, others=others, interval_seconds=0.25
        )
        for name, which in (("to the first refusal", 0), ("to a refusal of blocks", 1)):
            jump = button(name, lambda which=which: self.to_refusal(which))  # type: ignore[misc]
            self.buttons[name] = jump
            self.box.children[0].children += (jump,)

    def to_refusal(self, which: int = 0) -> None:
        """Go to the step at which one piece each (0) or blocks (1) let a request wait."""
        values = self.values
        steps = race_steps(values["lengths"], values["policy"], values["block_size"])
        self.go(first_refusal(steps[which]))

    def redraw(self) -> None:
        """Draw the present step; another stream may be longer or shorter."""
        values, step = self.values, self.controls["step"]
        pair = race_steps(values["lengths"], values["policy"], values["block_size"])
        last = max(len(steps) for steps in pair) - 1
        if last != step.max:
            held, self._held = self._held, True
            set_range(step, 0, last)
            self._held = held
        super().redraw()


def allocation_race(*, block_size: int = 16, scale: float = 1.0) -> AllocationRace:
    """Return the race, stopped where one piece for each request refuses the first one.

    >>> race = allocation_race()
    >>> race.numbers["contiguous: running batch"], race.numbers["paged: running batch"]
    ('4', '5')
    """
    return AllocationRace(block_size=block_size, scale=scale)

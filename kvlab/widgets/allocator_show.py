"""The race of two allocators for a room: waste, batch and tokens a second, large, side by side.

Steps, refusals and controls are those of `AllocationRace`. Playing stops at each first refusal.
"""

import asyncio
from functools import cache

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.figures.allocator_columns import allocator_columns
from kvlab.figures.allocators import Lane
from kvlab.figures.palette import request_letter
from kvlab.paging.stream import StreamStep
from kvlab.serving.step_clock import StepClock
from kvlab.serving.stream_speed import stream_speed
from kvlab.widgets.allocation_race import (
    COUNT,
    LONGEST,
    NUM_SLOTS,
    AllocationRace,
    first_refusal,
    race_steps,
)
from kvlab.widgets.base import Frame

MODEL, GPU = "llama-2-13b", "A100 40GB"
SCOPE = (
    f"Tokens/s: simulated, the least time by the roofline of one decode step of this batch with "
    f"{MODEL} in 16 bit on an {GPU}; reading prompts is left out."
)
"""What the speed is the speed of."""

_READING = f"A letter is a request, a cell is to scale. {SCOPE}"


@cache
def clock() -> StepClock:
    """Return the simulator's clock for `MODEL` on `GPU`."""
    return StepClock(Deployment.of(MODEL), Device.of(GPU))


def numbers_of(look: StreamStep) -> dict[str, str]:
    """Return what the room reads off one allocator after a step."""
    return {
        "running": f"{len(look.running)}",
        "of slots wasted": f"{look.use.wasted_share:.1%}" if look.pieces else "none",
        "tokens/s": f"{stream_speed(look, clock()):,.0f}",
        "finished": f"{look.finished}/{COUNT}",
    }


def show_frame(
    lengths: str, policy: str, block_size: int, step: int, *, scale: float = 1.0
) -> Frame:
    """Return both memories after a step.

    >>> frame = show_frame("a few long, many short", "max", 16, 16)
    >>> frame.readout["one piece each: running"], frame.readout["blocks: running"]
    ('4', '5')
    """
    now = [steps[min(step, len(steps) - 1)] for steps in race_steps(lengths, policy, block_size)]
    names = ("one piece each", f"blocks of {block_size}")
    columns = [
        Lane(name, look.pieces, numbers_of(look), _waits(look), wanted)
        for name, look, wanted in zip(
            names, now, (LONGEST if policy == "max" else 0, 0), strict=True
        )
    ]
    picture = allocator_columns(
        columns,
        num_slots=NUM_SLOTS,
        row_slots=128,
        title=f"The same requests, twice: {NUM_SLOTS:,} slots, at most {LONGEST} tokens each",
        reading=_READING,
        scale=scale,
    )
    numbers = {
        f"{name}: {key}": value
        for name, column in zip(("one piece each", "blocks"), columns, strict=True)
        for key, value in column.numbers.items()
    }
    words = [look.words if look.step == step else "all done" for look in now]
    said = f"Step {step}. One piece each: {words[0]}. Blocks: {words[1]}."
    return Frame(picture, numbers, said, numbers_in_picture=True)


def _waits(look: StreamStep) -> str:
    if not look.waiting:
        return ""
    return f"refuses {request_letter(look.waiting[0])}, {len(look.waiting)} waiting"


class AllocatorShow(AllocationRace):
    """The race with large numbers; controls are `lengths`, `policy`, `block_size` and `step`."""

    def __init__(self, *, scale: float = 1.0) -> None:
        super().__init__()

        def draw(**values: object) -> Frame:
            return show_frame(**values, scale=scale)  # type: ignore[arg-type]

        self.draw = draw
        self.redraw()

    def refusals(self) -> tuple[int, int]:
        """Return the steps at which one piece each and blocks let a request wait."""
        values = self.values
        pair = race_steps(values["lengths"], values["policy"], values["block_size"])
        return first_refusal(pair[0]), first_refusal(pair[1])

    async def _play(self) -> None:
        control, stops = self.controls["step"], set(self.refusals())
        while control.value < control.max:
            await asyncio.sleep(self.interval)
            self.forward()
            if control.value in stops:
                break
        self.buttons["play"].description = "\u25b6 play"


def allocator_show(*, scale: float = 1.0) -> AllocatorShow:
    """Return the race, stopped where one piece for each request refuses the first one.

    >>> show = allocator_show()
    >>> show.numbers["one piece each: running"], show.refusals()
    ('4', (16, 48))
    """
    return AllocatorShow(scale=scale)

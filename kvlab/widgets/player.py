"""A step player: back, play, forward and a slider that the arrow keys move.

Nothing moves by itself: playing starts on a press and pauses on the next. It runs on the kernel's
event loop, without a thread, and stops at the last step.
"""

import asyncio
from collections.abc import Callable

import ipywidgets as widgets

from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown, slider

_PLAY, _PAUSE = "\u25b6 play", "\u275a\u275a pause"


class StepPlayer(Explorer):
    """An explorer whose control `step` goes from 0 to `num_steps` - 1.

    `draw(step=..., **others)` gets the 0-based step and the values of the other controls.

    >>> player = StepPlayer(lambda step: Frame(f"<i>{step}</i>"), 3, kind="demo")
    >>> player.forward(); player.forward(); player.forward()
    >>> player.controls["step"].value
    2
    """

    def __init__(
        self,
        draw: Callable[..., Frame],
        num_steps: int,
        *,
        kind: str,
        start: int = 0,
        others: dict[str, widgets.Widget] | None = None,
        name: str = "step",
        interval_seconds: float = 1.2,
    ) -> None:
        step = slider(name, start, 0, num_steps - 1)
        self.interval = interval_seconds
        self._task: asyncio.Task[None] | None = None
        self.buttons = {
            "back": button("\u2190 back", self.back, hint="one step back"),
            "play": button(_PLAY, self.toggle, hint="play the steps one after another"),
            "forward": button("forward \u2192", self.forward, hint="one step forward"),
            "example": button("back to the example", self.reset),
        }
        extras = list(self.buttons.values())
        super().__init__({**(others or {}), "step": step}, draw, kind=kind, extras=extras)
        self.box.add_class("kvlab-player")

    def go(self, step: int) -> None:
        """Go to a step; before the first is the first, past the last is the last."""
        control = self.controls["step"]
        control.value = min(max(step, control.min), control.max)

    def back(self) -> None:
        """Go one step back."""
        self.go(self.controls["step"].value - 1)

    def forward(self) -> None:
        """Go one step forward."""
        self.go(self.controls["step"].value + 1)

    @property
    def playing(self) -> bool:
        """Whether the steps are playing."""
        return self._task is not None and not self._task.done()

    def toggle(self) -> None:
        """Play from here, from the start if this is the last step, or pause."""
        if self.playing:
            self._task.cancel()
            self.buttons["play"].description = _PLAY
            return
        control = self.controls["step"]
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no kernel: one step is all that can be shown
            self.forward()
            return
        if control.value == control.max:
            self.go(control.min)
        self.buttons["play"].description = _PAUSE
        self._task = loop.create_task(self._play())

    async def _play(self) -> None:
        control = self.controls["step"]
        while control.value < control.max:
            await asyncio.sleep(self.interval)
            self.forward()
        self.buttons["play"].description = _PLAY


def head_switch(num_heads: int) -> widgets.Dropdown:
    """Return the switch between one and two heads.

    >>> head_switch(1).value
    1
    """
    return dropdown("heads", [("1 head", 1), ("2 heads", 2)], num_heads)

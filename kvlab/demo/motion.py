"""What moves a widget: one step of the arrow keys, and playing by itself until it is stopped."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from kvlab.demo.controls import named_controls
from kvlab.widgets.player import StepPlayer
from kvlab.widgets.race import Race

SWEEP_SECONDS = 0.9
"""Between two steps when playing moves a slider that has no player of its own."""


def step_widget(widget: Any, arrows: str, by: int) -> bool:
    """Move a widget one step, `by` 1 or -1; say whether there was one to move to.

    `arrows` is the name of a control, or those of two buttons; "" moves nothing.

    >>> from kvlab.widgets.follow_token import follow_token
    >>> show = follow_token(start=7)
    >>> step_widget(show, "step", 1), step_widget(show, "step", -1), show.controls["step"].value
    (False, True, 6)
    """
    names = arrows.split()
    if not names:
        return False
    controls = named_controls(widget)
    if len(names) == 2:
        button = controls[names[by > 0]]
        if not button.disabled:
            button.click()
        return not button.disabled
    control = controls[names[0]]
    chooses = hasattr(control, "_options_labels")
    low, high = (0, len(control.options) - 1) if chooses else (control.min, control.max)
    wanted = (control.index if chooses else control.value) + by
    if control.disabled or not low <= wanted <= high:
        return False
    setattr(control, "index" if chooses else "value", wanted)
    return True


class Motion:
    """Plays a widget: a race runs, a player steps, any other moves the slider of its arrow keys.

    Without an event loop one step is all that is taken, or the whole race is run.
    """

    def __init__(self) -> None:
        self._sweep: asyncio.Task[None] | None = None

    def busy(self, widget: Any) -> bool:
        """Return whether a widget moves by itself."""
        if self._sweep is not None and not self._sweep.done():
            return True
        if isinstance(widget, Race):
            return widget.running
        return isinstance(widget, StepPlayer) and widget.playing

    def start(self, widget: Any, arrows: str) -> None:
        """Let a widget move; a question shows its answer, which is what one waits for there."""
        if isinstance(widget, Race):
            widget.start()
        elif isinstance(widget, StepPlayer):
            widget.toggle()
        elif "show" in widget.controls:
            widget.controls["show"].click()
        else:
            self._start_sweep(lambda: step_widget(widget, arrows, 1))

    def _start_sweep(self, step: Callable[[], bool]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            step()
            return
        self._sweep = loop.create_task(_sweep(step))

    def halt(self, widget: Any) -> None:
        """Stop whatever moves; a race ends after the token under way."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if isinstance(widget, Race):
            widget.stop()
        elif isinstance(widget, StepPlayer) and widget.playing:
            widget.toggle()


async def _sweep(step: Callable[[], bool]) -> None:
    with contextlib.suppress(Exception):  # the widget shows its own error
        while step():
            await asyncio.sleep(SWEEP_SECONDS)

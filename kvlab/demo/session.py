"""One demo under way: the widget of the present stage, what was said last, and what runs.

Everything happens on one thread; a long run gives way between its tokens. An error becomes one
line of the state, and the widget stays as it was.
"""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import ipywidgets as widgets

from kvlab.demo.controls import describe, hidden, named_controls, setter
from kvlab.demo.motion import Motion, step_widget
from kvlab.demo.stages import Demo, Preset, filled
from kvlab.errors import InvalidArgument
from kvlab.widgets.base import one_line

KEEPS = ("reveal", "shown", "guess")
"""Controls with which the class looks at what a preset asked: they leave its question standing."""


class Session:
    """A demo and its widgets, each built when its stage is first shown.

    >>> from kvlab.demo.registry import find_demo
    >>> Session(find_demo("follow-token")).step(1)["event"][:48]
    'E is consumed: k4 and v4 are written, k0 to k3 a'
    """

    def __init__(self, demo: Demo) -> None:
        self.demo, self.stages = demo, demo.stages
        self.place, self.version = 0, 0
        self.sentence = self.error = ""
        self.chosen: Preset | None = None
        self.motion = Motion()
        self._made: dict[int, Any] = {}
        self._last: dict[str, Any] = {}

    @property
    def widget(self) -> Any:
        """The widget of the present stage, built now if it is not there yet."""
        if self.place not in self._made:
            self._made[self.place] = self.stages[self.place].build()
        return self._made[self.place]

    @property
    def busy(self) -> bool:
        """Whether something moves by itself: a race, a player, or a slider that is played."""
        return self.motion.busy(self._made.get(self.place))

    def state(self) -> dict[str, Any]:
        """Return all that the page shows; `version` grows whenever something changed."""
        try:
            told = self._told(self.widget)
        except Exception as error:  # a model that is not here, say: the page must tell it
            told = self._bare() | {"error": one_line(error)}
        if told != self._last:
            self._last, self.version = told, self.version + 1
        return {**told, "version": self.version}

    def _bare(self) -> dict[str, Any]:
        demo, stage = self.demo, self.stages[self.place]
        every = [preset.name for one in self.stages for preset in one.presets]
        return {
            "demo": demo.name, "title": demo.title, "chapter": demo.chapter, "point": demo.point,
            "stages": [one.name for one in self.stages], "stage": self.place, "presets": every,
            "preset": self.chosen.name if self.chosen else "", "arrows": stage.arrows,
            "controls": [], "picture": "", "event": "", "numbers": [], "sentence": "",
            "busy": self.busy,
        }  # fmt: skip

    def _told(self, widget: Any) -> dict[str, Any]:
        frame, told = widget.frame, self._bare()
        controls = [
            describe(name, one)
            for name, one in named_controls(widget).items()
            if not hidden(one, widget) and one.description not in told["presets"]
        ]
        numbers = [] if frame.numbers_in_picture else [list(pair) for pair in frame.readout.items()]
        told |= {"controls": controls, "picture": str(frame.picture), "event": frame.event}
        told |= {"numbers": numbers, "sentence": self._said(widget)}
        return told | {"error": self.error or _error_of(widget)}

    def _said(self, widget: Any) -> str:
        """The preset's sentence; its question instead while the class has not looked yet."""
        preset = self.chosen
        if preset is None or not preset.asks:
            return self.sentence
        looked = widget.controls["shown"].value
        return filled(preset.sentence if looked else preset.asks, widget, preset.facts)

    def change(self, name: Any, value: Any = None) -> dict[str, Any]:
        """Give a control a value, or press a button, and return the state.

        Raises `InvalidArgument` for a control that is not there or a value that it can't take.
        """
        controls = named_controls(self.widget)
        if not isinstance(name, str) or name not in controls:
            rule = f"no such control; there are {', '.join(controls)}"
            raise InvalidArgument("control", name, rule)
        act = setter(name, controls[name], value)
        self._settle(keep=name in KEEPS)
        if not (isinstance(controls[name], widgets.Button) and self.busy):
            self.motion.halt(self.widget)
        return self._try(act)

    def preset(self, name: Any) -> dict[str, Any]:
        """Apply a preset, on its own stage, and return the state with its sentence."""
        place, preset = self.demo.preset(name)
        self._go(place)

        def do() -> None:
            preset.do(self.widget)
            self.chosen = preset
            if not preset.asks:
                self.sentence = filled(preset.sentence, self.widget, preset.facts)

        return self._try(do)

    def choose(self, place: Any) -> dict[str, Any]:
        """Show another stage, by its place, and return the state."""
        if not isinstance(place, int) or not 0 <= place < len(self.stages):
            raise InvalidArgument("stage", place, f"must be from 0 to {len(self.stages) - 1}")
        self._go(place)
        return self.state()

    def _go(self, place: int) -> None:
        self.halt()
        self._settle()
        self.place = place

    def step(self, by: Any) -> dict[str, Any]:
        """Step what the arrow keys step, 1 forward or -1 back, and return the state."""
        if by not in (1, -1):
            raise InvalidArgument("by", by, "must be 1 or -1")
        self.halt()
        self._settle()
        return self._try(lambda: step_widget(self.widget, self.stages[self.place].arrows, by))

    def play(self) -> dict[str, Any]:
        """Start what plays, or stop it: the race, the steps, or the slider of the arrow keys."""
        self._settle(keep=True)
        if self.busy:
            self.halt()
            return self.state()
        arrows = self.stages[self.place].arrows
        return self._try(lambda: self.motion.start(self.widget, arrows))

    def halt(self) -> None:
        """Stop whatever moves by itself; a race ends after the token under way."""
        self.motion.halt(self._made.get(self.place))

    def _settle(self, *, keep: bool = False) -> None:
        """Forget the error, and unless told to keep it, what the last preset said."""
        self.error = ""
        if not keep:
            self.sentence, self.chosen = "", None

    def _try(self, action: Callable[[], object]) -> dict[str, Any]:
        """Do something and return the state; whatever goes wrong becomes its line of error."""
        try:
            action()
        except Exception as error:
            self.error = one_line(error)
        return self.state()


def _error_of(widget: Any) -> str:
    """The words of the error that a widget shows; its markup says them in the label."""
    found = re.search(r'aria-label="([^"]*)"', widget.error.value)
    return unescape(found[1]) if found else ""

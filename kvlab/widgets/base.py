"""A controller: it hands the values of its controls to one drawing function and shows the result.

The picture is updated in place, never redrawn as a new output, so moving a slider leaves one
picture. Its display carries the last picture as plain HTML too, for pages without a kernel.
No arithmetic and no drawing happen here.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipywidgets as widgets

from kvlab.errors import InvalidArgument, KvlabError
from kvlab.figures.caption import captioned
from kvlab.figures.cards import feedback
from kvlab.figures.svg import Picture
from kvlab.figures.tables import note, readout_sheet
from kvlab.widgets.controls import observe_once
from kvlab.widgets.names import slider_names

MAX_ERROR_CHARS = 300
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class Frame:
    """What a widget shows: a picture, numbers by name, and what just happened in words.

    `numbers_in_picture` tells that the picture shows them already, so the page doesn't twice.
    """

    picture: str
    readout: Mapping[str, str] = field(default_factory=dict)
    event: str = ""
    numbers_in_picture: bool = False


def strict() -> bool:
    """Return whether errors in a widget are raised, as under pytest or with `KVLAB_STRICT=1`."""
    return os.environ.get("KVLAB_STRICT") == "1" or "PYTEST_VERSION" in os.environ


def one_line(error: Exception) -> str:
    """Return an error as one readable line.

    >>> one_line(KeyError("q"))
    "KeyError: 'q'"
    """
    text = str(error) if isinstance(error, KvlabError) else f"{type(error).__name__}: {error}"
    words = " ".join(text.split())
    return words if len(words) <= MAX_ERROR_CHARS else words[:MAX_ERROR_CHARS] + "..."


class Panel:
    """What every widget shows: a `picture`, the `event` in words, a `readout`, one line of `error`.

    `numbers` holds the readout of the last frame as text by name. It displays as a live widget
    with the last picture beside it as HTML.
    """

    def __init__(
        self,
        kind: str,
        bar: Sequence[widgets.Widget],
        *,
        beside: bool = False,
        below: bool = False,
    ) -> None:
        self.kind = kind
        self.picture, self.readout = widgets.HTML(), widgets.HTML()
        self.event, self.error = widgets.HTML(), widgets.HTML()
        self.numbers: dict[str, str] = {}
        self.frame = Frame("")
        self.box = self._build(bar, beside, below)

    def _build(self, bar: Sequence[widgets.Widget], beside: bool, below: bool) -> widgets.Widget:
        """Lay out controls, picture and numbers.

        Controls come first, or left of the picture (`beside`), or after it (`below`): there the
        picture asks the question that they answer.
        """
        column = {"flex_flow": "column", "flex": "0 0 330px", "overflow": "hidden"}
        layout = widgets.Layout(**column if beside else {"flex_flow": "row wrap"})
        controls = widgets.Box(list(bar), layout=layout)
        controls.add_class("kvlab-controls")
        shown = {"picture": self.picture, "event": self.event}
        shown |= {"readout": self.readout, "error": self.error}
        for name, part in shown.items():
            part.add_class(f"kvlab-{name}")
        parts = [controls, widgets.VBox(list(shown.values())), slider_names()]
        if below:
            parts = [self.picture, controls, widgets.VBox(list(shown.values())[1:])]
        made = widgets.HBox(parts) if beside else widgets.VBox(parts)
        for name in ("widget", self.kind):
            made.add_class(f"kvlab-{name}")
        return made

    def show_frame(self, frame: Frame) -> None:
        """Put a frame on the page; parts that did not change are not sent again."""
        self.frame, self.numbers = frame, dict(frame.readout)
        self.error.value = ""
        self.picture.value = str(frame.picture)
        self.event.value = note(frame.event) if frame.event else ""
        below = frame.readout and not frame.numbers_in_picture
        self.readout.value = readout_sheet(frame.readout) if below else ""

    def show_error(self, error: Exception) -> None:
        """Show an error as one line; raise it when `strict()`."""
        self.error.value = feedback("error", one_line(error))
        if strict():
            raise error

    def still(self) -> Picture:
        """Return the present picture, event and numbers as one picture that needs no kernel."""
        frame = self.frame
        if not isinstance(frame.picture, Picture):
            return Picture(str(frame.picture), label=frame.event or self.kind)
        numbers = {} if frame.numbers_in_picture else frame.readout
        return captioned(frame.picture, frame.event, numbers)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}
        return {**self.still()._repr_mimebundle_(), WIDGET_VIEW: view}


class Explorer(Panel):
    """A panel with `controls` by name, whose values go to one drawing function.

    `draw(**values)` takes the value of every control and returns a `Frame`.

    >>> slider = widgets.IntSlider(description="n", min=0, max=9)
    >>> show = Explorer({"n": slider}, lambda n: Frame(f"<b>{n}</b>", {"n": str(n)}), kind="demo")
    >>> slider.value = 7
    >>> show.numbers, show.picture.value
    ({'n': '7'}, '<b>7</b>')
    """

    def __init__(
        self,
        controls: Mapping[str, widgets.Widget],
        draw: Callable[..., Frame],
        *,
        kind: str,
        extras: Sequence[widgets.Widget] = (),
        beside: bool = False,
    ) -> None:
        self.controls, self.draw = dict(controls), draw
        self.example = self.values
        self._held = False
        super().__init__(kind, [*self.controls.values(), *extras], beside=beside)
        for control in self.controls.values():
            observe_once(control, self._on_change)
        self.redraw()

    @property
    def values(self) -> dict[str, Any]:
        """The value of every control, by name."""
        return {name: control.value for name, control in self.controls.items()}

    def set(self, **values: object) -> None:
        """Set several controls and redraw once.

        Raises `InvalidArgument` for a control that is not there.
        """
        self._held = True
        try:
            for name, value in values.items():
                if name not in self.controls:
                    rule = f"must be one of {', '.join(self.controls)}"
                    raise InvalidArgument("control", name, rule)
                self.controls[name].value = value
        finally:
            self._held = False
            self.redraw()

    def reset(self) -> None:
        """Go back to the example: the values that the widget started with."""
        self.set(**self.example)

    def _on_change(self, change: Mapping[str, object]) -> None:
        if not self._held:
            self.redraw()

    def redraw(self) -> None:
        """Draw the present values, in place."""
        try:
            self.show_frame(self.draw(**self.values))
        except Exception as error:
            self.show_error(error)

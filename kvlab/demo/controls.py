"""Widgets as a page draws them: each control as plain values, and changes checked on their way in.

Selections go by index, so a page can never name a value that is not offered.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ipywidgets as widgets

from kvlab.errors import InvalidArgument

_CHOICES = (widgets.Dropdown, widgets.ToggleButtons, widgets.RadioButtons)
_NUMBERS = (widgets.BoundedFloatText, widgets.BoundedIntText, widgets.FloatText, widgets.IntText)
_SLIDERS = (widgets.IntSlider, widgets.FloatSlider)
MAX_TEXT = 200_000
"""Characters that a text may have: more than the longest config.json."""


def named_controls(panel: Any) -> dict[str, widgets.Widget]:
    """Return every control and button of a panel by name, in the order in which they stand.

    >>> from kvlab.widgets.follow_token import follow_token
    >>> list(named_controls(follow_token()))
    ['heads', 'step', 'back', 'play', 'forward', 'example']
    """
    known = {id(one): name for name, one in panel.controls.items()}
    known |= {id(one): name for name, one in getattr(panel, "buttons", {}).items()}
    found: dict[str, widgets.Widget] = {}
    for one in _leaves(_bar(panel.box)):
        name = known.get(id(one)) or f"{one.description}"
        found[name] = one
    return found


def _bar(box: Any) -> Any:
    """The box of a panel that holds its controls."""
    if "kvlab-controls" in box._dom_classes:
        return box
    return next((made for child in getattr(box, "children", ()) if (made := _bar(child))), None)


def _leaves(box: Any) -> Iterator[widgets.Widget]:
    for child in box.children:
        if isinstance(child, widgets.Box):
            yield from _leaves(child)
        else:
            yield child


def hidden(control: widgets.Widget, panel: Any) -> bool:
    """Return whether a control, or a box around it, is not shown now."""
    if control.layout.display == "none":
        return True
    boxes = [one for one in panel.controls.values() if isinstance(one, widgets.Box)]
    return any(box.layout.display == "none" and control in box.children for box in boxes)


def describe(name: str, control: Any) -> dict[str, Any]:
    """Return a control as plain values: name, label, kind, value and what bounds it.

    Kinds are range, select, checkbox, text, number and button. Raises `InvalidArgument` for a
    control that a page can't draw.

    >>> from kvlab.widgets.controls import powers
    >>> told = describe("context", powers("tokens", 2, 1, 4))
    >>> told["kind"], told["value"], told["words"], told["max"]
    ('range', 1, '2', 2)
    """
    told = {"name": name, "label": control.description, "disabled": bool(control.disabled)}
    if isinstance(control, widgets.Button):
        return told | {"kind": "button", "hint": control.tooltip or ""}
    if isinstance(control, widgets.SelectionSlider):
        most = len(control.options) - 1
        place = {"value": control.index, "min": 0, "max": most, "step": 1}
        return told | {"kind": "range", "words": control.label, **place}
    if isinstance(control, _CHOICES):
        options = [str(label) for label in control._options_labels]
        return told | {"kind": "select", "value": control.index, "options": options}
    if isinstance(control, widgets.Checkbox):
        return told | {"kind": "checkbox", "value": bool(control.value)}
    if isinstance(control, _SLIDERS):
        bounds = {"min": control.min, "max": control.max, "step": control.step}
        return told | {
            "kind": "range", "value": control.value, "words": f"{control.value:,}", **bounds
        }  # fmt: skip
    if isinstance(control, _NUMBERS):
        bounds = {key: getattr(control, key, None) for key in ("min", "max", "step")}
        return told | {"kind": "number", "value": control.value, **bounds}
    if isinstance(control, widgets.Text | widgets.Textarea):
        long = isinstance(control, widgets.Textarea)
        hint = {"hint": control.placeholder or "", "long": long}
        return told | {"kind": "text", "value": control.value, **hint}
    raise InvalidArgument("control", type(control).__name__, "a demo can't draw this control")


def setter(name: str, control: Any, value: Any) -> Callable[[], object]:
    """Return what gives a control a value that came from a page; called, its callbacks run.

    Raises `InvalidArgument` when the value is of the wrong kind or out of bounds.

    >>> from kvlab.widgets.controls import slider
    >>> users = slider("users", 1, 1, 256)
    >>> setter("users", users, 999)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: users=999: must be from 1 to 256
    >>> setter("users", users, 24)()
    >>> users.value
    24
    """
    told = describe(name, control)
    if told["disabled"]:
        raise InvalidArgument(name, value, "this control is switched off now")
    if told["kind"] == "button":
        return control.click
    attribute, wanted = "value", value
    if hasattr(control, "_options_labels"):
        most = len(control._options_labels) - 1
        attribute, wanted = "index", _number(name, value, {"min": 0, "max": most}, whole=True)
    elif told["kind"] == "checkbox":
        if not isinstance(value, bool):
            raise InvalidArgument(name, value, "must be true or false")
    elif told["kind"] == "text":
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise InvalidArgument(name, value, f"must be a text of at most {MAX_TEXT:,} characters")
    else:
        wanted = _number(name, value, told, whole=isinstance(control.value, int))
    return lambda: setattr(control, attribute, wanted)


def _number(name: str, value: Any, told: Mapping[str, Any], *, whole: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidArgument(name, value, "must be a number")
    low, high = told["min"], told["max"]
    if (low is not None and value < low) or (high is not None and value > high):
        raise InvalidArgument(name, value, f"must be from {low:,} to {high:,}")
    if whole and value != int(value):
        raise InvalidArgument(name, value, "must be a whole number")
    return int(value) if whole else float(value)

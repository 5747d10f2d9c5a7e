"""Move every control of a widget and time the kernel's part: from the new value to the picture.

That is what happens in Python between a message of the browser and the answer: no comm, no browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from kvlab.bench.timing import timed

if TYPE_CHECKING:
    from kvlab.widgets.base import Explorer

MOST_VALUES = 12
"""Values that a control is moved to, its ends included."""


class WidgetTime(NamedTuple):
    """The kernel's part of one widget, in seconds: median of all moves, worst when moved first.

    `worst_seconds` is of a value that was never shown before, `again_seconds` the worst of those
    that were; `picture_bytes` is the largest picture, as the page receives it.
    """

    name: str
    moves: int
    median_seconds: float
    worst_seconds: float
    worst_control: str
    again_seconds: float
    picture_bytes: int


def time_widget(name: str, make: Callable[[], Explorer], rounds: int = 3) -> WidgetTime:
    """Make a widget, move each of its controls to values all over its range, and time each move.

    A move that the widget refuses with a line of words counts too. The first of `rounds` finds
    nothing kept from before; of the later ones the fastest time of each move counts.

    >>> from kvlab.bench.widget_list import widget_makers
    >>> time_widget("follow_token", widget_makers()["follow_token"], rounds=2).moves > 5
    True
    """
    show = make()
    rows: list[dict[tuple[str, str], float]] = []
    largest = 0
    for _ in range(rounds):
        rows.append({})
        show.reset()
        for control, value in moves_of(show):
            widget = show.controls[control]
            taken = timed(lambda widget=widget, value=value: _set(widget, value), collect=False)
            rows[-1][control, str(value)] = taken
            largest = max(largest, len(show.picture.value.encode()))
    first, *later = rows
    again = {key: min(row.get(key, first[key]) for row in later or rows) for key in first}
    (control, _), worst = max(first.items(), key=lambda item: item[1])
    every = [*first.values(), *again.values()]
    return WidgetTime(name, len(first), median(every), worst, control, max(again.values()), largest)


def _set(control: Any, value: Any) -> None:
    control.value = value


def moves_of(show: Explorer) -> Iterator[tuple[str, Any]]:
    """Yield (control, value) for every control that can be moved, its present value never first.

    The range is read when a control's turn comes, because some controls change others.
    """
    for name in list(show.controls):
        control = show.controls[name]
        if getattr(control, "disabled", False):
            continue
        home = control.value
        for value in values_of(control):
            if value != control.value:
                yield name, value
        if not getattr(control, "disabled", False) and home in values_of(control):
            control.value = home


def values_of(control: Any) -> list[Any]:
    """Return values all over a control's range; none for a text field or a button.

    >>> from kvlab.widgets.controls import slider
    >>> values_of(slider("step", 0, 0, 3))
    [0, 1, 2, 3]
    """
    options = getattr(control, "options", None)
    if options is not None:
        every = [o[1] if isinstance(o, tuple) else o for o in options]
    elif isinstance(getattr(control, "value", None), bool):
        every = [False, True]
    elif hasattr(control, "min") and hasattr(control, "max"):
        every = _steps(control)
    else:
        return []
    return every if len(every) <= MOST_VALUES else _thinned(every)


def _steps(control: Any) -> list[Any]:
    if isinstance(control.value, int):
        return list(range(control.min, control.max + 1, control.step or 1))
    span = control.max - control.min
    return [control.min + span * i / (MOST_VALUES - 1) for i in range(MOST_VALUES)]


def _thinned(every: list[Any]) -> list[Any]:
    last = len(every) - 1
    return [every[round(last * i / (MOST_VALUES - 1))] for i in range(MOST_VALUES)]

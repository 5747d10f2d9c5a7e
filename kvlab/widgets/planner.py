"""The planner: from a model, GPUs and a promise to what fits, what binds and what to change next.

The arithmetic is `kvlab.arithmetic.sizing` and its neighbours; nothing is computed here.
"""

from typing import Any

from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button
from kvlab.widgets.planner_frame import plan_frame
from kvlab.widgets.planner_inputs import EXAMPLE, PRESETS, planned, planner_controls


def planner(preset: str = "", *, scale: float = 1.0, **values: Any) -> Explorer:
    """Return the planner; `preset` is a name of `PRESETS`, `values` change single controls.

    A presets' button makes one point in a click; a layout that cannot be is one line of error.

    >>> show = planner("MQA: 92 or 11?")
    >>> show.numbers["requests at their peak"], show.numbers["counted as one pool"]
    ('11', '92.92')
    """
    start = {**(PRESETS[preset] if preset else EXAMPLE), **values}

    def draw(**chosen: Any) -> Frame:
        return plan_frame(*planned(**chosen), scale=scale)

    def choose(name: str) -> Any:
        return lambda: show.set(**PRESETS[name])

    extras = [button(name, choose(name)) for name in PRESETS]
    extras.append(button("back to the example", lambda: show.reset()))
    show = Explorer(planner_controls(start), draw, kind="planner", extras=extras, beside=True)
    return show

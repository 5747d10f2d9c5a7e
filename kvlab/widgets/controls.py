"""Controls with a name that says quantity and unit, and the safe ways of changing them.

Only core ipywidgets 7.7 and 8 are used, so that they work wherever notebooks do.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets

_WIDE = {"description_width": "initial"}


def slider(name: str, value: int, low: int, high: int, step: int = 1) -> widgets.IntSlider:
    """Return a slider over whole numbers; `name` says the quantity and its unit.

    >>> slider("step", 0, 0, 7).max
    7
    """
    layout = widgets.Layout(width="380px")
    return widgets.IntSlider(
        value=value, min=low, max=high, step=step, description=name, style=_WIDE, layout=layout
    )


def powers(
    name: str, value: int, low: int, high: int, *, width: str = "380px"
) -> widgets.SelectionSlider:
    """Return a slider over the powers of two from `low` to `high`, shown with separators.

    >>> powers("prompt tokens P", 64, 1, 4096).options[-1]
    ('4,096', 4096)
    """
    layout = widgets.Layout(width=width)
    options = power_options(low, high)
    return widgets.SelectionSlider(
        options=options, value=value, description=name, style=_WIDE, layout=layout
    )


def power_options(low: int, high: int) -> list[tuple[str, int]]:
    """Return the powers of two from `low` to `high` with their words.

    >>> power_options(512, 2048)
    [('512', 512), ('1,024', 1024), ('2,048', 2048)]
    """
    options, power = [], 1
    while power <= high:
        if power >= low:
            options.append((f"{power:,}", power))
        power *= 2
    return options


def dropdown(name: str, options: Sequence[Any], value: object) -> widgets.Dropdown:
    """Return a choice of real things: models, heads, modes.

    >>> dropdown("model", ["smollm2", "tiny"], "tiny").value
    'tiny'
    """
    layout = widgets.Layout(width="max-content", min_width="220px")
    return widgets.Dropdown(
        options=options, value=value, description=name, style=_WIDE, layout=layout
    )


def button(name: str, action: Callable[[], object], *, hint: str = "") -> widgets.Button:
    """Return a button that calls `action` without arguments.

    >>> button("back to the example", lambda: None).description
    'back to the example'
    """
    made = widgets.Button(
        description=name, tooltip=hint or name, layout=widgets.Layout(width="auto")
    )
    made.on_click(lambda _: action())
    return made


def observe_once(control: widgets.Widget, callback: Callable[[Mapping[str, object]], None]) -> None:
    """Call back when the value changes, and make earlier callbacks of ours on it silent.

    A cell that is run again makes a new callback; without this a long-lived control would call
    every one that it ever had.
    """
    earlier = getattr(control, "_kvlab_callback", None)
    if earlier is not None:
        control.unobserve(earlier, names="value")
    control._kvlab_callback = callback
    control.observe(callback, names="value")


def set_range(control: Any, low: float, high: float, value: float | None = None) -> None:
    """Give a slider a new range, in an order that never crosses, and clamp its value into it.

    >>> wide = slider("tokens", 10, 1, 10)
    >>> set_range(wide, 20, 40)
    >>> wide.min, wide.max, wide.value
    (20, 40, 20)
    """
    wanted = control.value if value is None else value
    if low > control.max:
        control.max = high
        control.min = low
    else:
        control.min = low
        control.max = high
    control.value = min(max(wanted, low), high)


def set_options(control: Any, options: Sequence[Any], value: object = None) -> None:
    """Give a choice new options and keep its value, else the nearest number, else the first.

    >>> choice = powers("tokens", 4096, 512, 4096)
    >>> set_options(choice, power_options(512, 1024))
    >>> choice.value
    1024
    """
    wanted = control.value if value is None else value
    found = [o[1] if isinstance(o, tuple) else o for o in options]
    if wanted not in found:
        numeric = all(isinstance(v, int | float) for v in (*found, wanted))
        wanted = min(found, key=lambda v: abs(v - wanted)) if numeric else found[0]
    callback = getattr(control, "_kvlab_callback", None)
    if callback is not None:
        control.unobserve(callback, names="value")
    before = control.value
    control.options = options  # ipywidgets puts the value on the first option here
    control.value = wanted
    if callback is not None:
        control.observe(callback, names="value")
        if control.value != before:
            callback({"name": "value", "old": before, "new": control.value, "owner": control})

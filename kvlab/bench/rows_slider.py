"""Row slider: from a moved control to the picture, in the kernel and, if named, in a browser."""

from __future__ import annotations

from collections.abc import Iterator

from kvlab.bench.lines import Line, joined
from kvlab.bench.setting import Setting
from kvlab.bench.timing import Times
from kvlab.bench.widget_list import widget_makers
from kvlab.bench.widget_moves import WidgetTime, time_widget

MS = "ms"


def rows(setting: Setting) -> Iterator[Line]:
    """Yield the kernel's part over every widget; with --only also the whole way in Chromium."""
    found = []
    for name, make in widget_makers().items():
        setting.say(f"slider: {name}")
        found.append(time_widget(name, make, setting.times(3)))
    yield from kernel_lines(found)
    if not setting.named:
        yield Line("slider: whole way, median", unit=MS, note="a browser is needed: --only slider")
        return
    from kvlab.bench.rows_browser import slider_lines

    yield from slider_lines(setting)


def kernel_lines(found: list[WidgetTime]) -> Iterator[Line]:
    """Yield two lines: the worst move to a value seen before, and to one never seen."""
    again = max(found, key=lambda one: one.again_seconds)
    first = max(found, key=lambda one: one.worst_seconds)
    slow = [f"{one.name} {1000 * one.worst_seconds:.0f}" for one in over(found, 0.010)]
    middle = Times(tuple(one.median_seconds for one in found))
    moves = sum(one.moves for one in found)
    yield Line(
        "slider: kernel, worst move to a value shown before", MS,
        ours=1000 * again.again_seconds,
        note=joined([f"{len(found)} widgets, {moves} moves", f"worst {again.name}",
                     f"median of the widgets {1000 * middle.median:.1f}"]),
    )  # fmt: skip
    yield Line(
        "slider: kernel, worst move to a new value", MS,
        ours=1000 * first.worst_seconds,
        note=joined([f"worst {first.name}, {first.worst_control}",
                     f"over 10 ms: {', '.join(slow) or 'none'}"]),
    )  # fmt: skip


def over(found: list[WidgetTime], seconds: float) -> list[WidgetTime]:
    """Return the widgets whose worst move took longer, the slowest first."""
    slow = [one for one in found if one.worst_seconds > seconds]
    return sorted(slow, key=lambda one: -one.worst_seconds)

"""A server over time: gauges and counters in tracks above each other, on one axis of time.

A track holds one or two lines that share a scale. Each name stands at the right end with the value
now; what comes after now is pale. No arithmetic beyond placing points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.axes import short_number, ticks
from kvlab.figures.curves import DASHES
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture, element, number

LEFT, RIGHT, GAP = 66, 176, 36


@dataclass(frozen=True)
class Gauge:
    """One line: its name, a value for each time (None: nothing yet), a role and a dash."""

    name: str
    values: Sequence[float | None]
    role: str = "value"
    dash: str = "solid"


@dataclass(frozen=True)
class Track:
    """Lines on one scale from 0 to `top`, else to the largest value; `unit` follows values."""

    name: str
    gauges: Sequence[Gauge]
    top: float | None = None
    unit: str = ""

    @cached_property
    def end(self) -> float:
        """The value at the upper edge; never 0."""
        known = [v for gauge in self.gauges for v in gauge.values if v is not None]
        return self.top or max(known, default=0) or 1.0


@dataclass(frozen=True)
class _Plot:
    """Where one track lies: pixels of its edges, the times that it shows, and their pixels."""

    track: Track
    times: Sequence[float]
    left: float
    right: float
    top: float
    bottom: float
    places: Sequence[str] = ()

    def x(self, seconds: float) -> float:
        """Return the pixel of a time."""
        first, last = self.times[0], self.times[-1]
        share = (seconds - first) / (last - first) if last > first else 0.0
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.bottom - min(1.0, value / self.track.end) * (self.bottom - self.top)


def said(value: float | None, unit: str) -> str:
    """Return a value with its unit, in three digits or so.

    >>> said(0.01234, "s"), said(85.0, "%"), said(None, "s"), said(1234, "")
    ('0.0123 s', '85 %', 'none yet', '1.23K')
    """
    if value is None:
        return "none yet"
    rounded = float(f"{value:.3g}")
    return f"{short_number(rounded)} {unit}".strip()


def serving_timeline(
    times: Sequence[float],
    tracks: Sequence[Track],
    *,
    now: int | None = None,
    axis: str = "seconds",
    title: str = "",
    reading: str = "",
    width: float = 960,
    height: float = 62,
    scale: float = 1.0,
) -> Picture:
    """Return the tracks; `now` is the 0-based index of the present time, None for the last.

    `height` is that of one track in pixels.

    >>> running = Track("requests", [Gauge("running", [1, 4, 2])])
    >>> serving_timeline([0, 1, 2], [running], now=1).label
    'A server at 1 seconds: running 4.'
    """
    here, sheet = _checked(times, tracks, now), Sheet(title, reading, width=width)
    top, told = sheet.top + 20, []
    left, right = MARGIN + LEFT, width - MARGIN - RIGHT
    flat = _Plot(tracks[0], times, left, right, top, top)
    places = [number(flat.x(seconds)) for seconds in times]  # the same for every track
    for track in tracks:
        plot = _Plot(track, times, left, right, top, top + height, places)
        sheet.add(_frame(plot), *(_line(plot, gauge, here) for gauge in track.gauges))
        sheet.add(_names(plot, here))
        told += [f"{g.name} {said(g.values[here], track.unit)}" for g in track.gauges]
        top += height + GAP
    bottom = top - GAP
    sheet.add(_time_axis(plot, bottom, axis), _cursor(plot, sheet.top + 20, bottom, here))
    label = f"A server at {said(times[here], axis)}: {', '.join(told)}."
    return sheet.close(bottom + 40, label=label, scale=scale)


def _checked(times: Sequence[float], tracks: Sequence[Track], now: int | None) -> int:
    if not times or not tracks:
        raise InvalidArgument("times", list(times), "there must be a time and a track")
    for track in tracks:
        for gauge in track.gauges:
            if len(gauge.values) != len(times):
                rule = f"must be {len(times)}, one for each time"
                raise InvalidArgument(f"values of {gauge.name}", len(gauge.values), rule)
    here = len(times) - 1 if now is None else now
    if not 0 <= here < len(times):
        raise InvalidArgument("now", now, f"must be from 0 to {len(times) - 1}")
    return here


def _frame(plot: _Plot) -> str:
    """The name of a track, its lines at 0 and at the end, and their numbers."""
    track = plot.track
    parts = [shapes.text(plot.left, plot.top - 7, track.name, quiet=True)]
    for value, level in ((0.0, plot.bottom), (track.end, plot.top)):
        parts.append(shapes.line(plot.left, level, plot.right, level, faint=True))
        place, look = (plot.left - 8, level + 4), {"mono": True, "quiet": True}
        parts.append(shapes.text(*place, said(value, ""), anchor="end", **look))
    return "".join(parts)


def _line(plot: _Plot, gauge: Gauge, here: int) -> str:
    """A line as stairs: full up to now, pale after it."""
    past, later = [], []
    levels: dict[float, str] = {}  # a gauge stands on few levels, and each is written once
    for index, value in enumerate(gauge.values):
        if value is not None:
            level = levels.get(value) or levels.setdefault(value, number(plot.y(value)))
            (past if index <= here else later).append((plot.places[index], level))
    return _stairs(past, gauge, None) + _stairs(past[-1:] + later, gauge, 0.4)


def _stairs(spots: Sequence[tuple[str, str]], gauge: Gauge, opacity: float | None) -> str:
    if len(spots) < 2:
        return ""
    path = "M{} {}".format(*spots[0]) + "".join([f"H{x}V{y}" for x, y in spots[1:]])
    attributes = {"d": path, "fill": "none", "stroke": palette.color_of(gauge.role)}
    more = {"stroke-width": 2, "stroke-dasharray": DASHES[gauge.dash], "stroke-opacity": opacity}
    return element("path", "", attributes | more)


def _names(plot: _Plot, here: int) -> str:
    """Each line's name and present value at the right, pushed apart, beside a stroke as key."""
    track, left = plot.track, plot.right + 14
    levels = [plot.y(g.values[here] or 0) for g in track.gauges]
    order = sorted(range(len(levels)), key=lambda i: levels[i])
    lowest = plot.bottom + 4 - 17 * (len(order) - 1)
    above, parts = -math.inf, []
    for place, index in enumerate(order):
        gauge = track.gauges[index]
        above = max(min(levels[index] + 4, lowest + 17 * place), above + 17, plot.top + 4)
        key = {"d": f"M{number(left)} {number(above - 4)}h18", "fill": "none", "stroke-width": 2.5}
        key |= {"stroke": palette.color_of(gauge.role), "stroke-dasharray": DASHES[gauge.dash]}
        parts.append(element("path", "", key) + shapes.text(left + 24, above, gauge.name))
        words, start = said(gauge.values[here], track.unit), left + 30 + text_width(gauge.name)
        parts.append(shapes.text(start, above, words, mono=True))
    return "".join(parts)


def _time_axis(plot: _Plot, bottom: float, axis: str) -> str:
    parts = []
    for value in (v for v in ticks(plot.times[-1], 8) if v >= plot.times[0]):
        spot = plot.x(value)
        parts.append(shapes.line(spot, bottom, spot, bottom + 5, faint=True))
        words = short_number(value)
        parts.append(shapes.text(spot, bottom + 19, words, anchor="middle", mono=True, quiet=True))
    middle = (plot.left + plot.right) / 2
    return "".join(parts) + shapes.text(middle, bottom + 38, axis, anchor="middle", quiet=True)


def _cursor(plot: _Plot, top: float, bottom: float, here: int) -> str:
    """A stroke through all tracks; none at the end, where all is past."""
    if here == len(plot.times) - 1:
        return ""
    spot = plot.x(plot.times[here])
    return shapes.line(spot, top - 4, spot, bottom, dashed=True)

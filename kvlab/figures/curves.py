"""Light line charts as SVG: direct labels at the ends, a thin grid, axes that say their unit.

They redraw in a few milliseconds, so they serve widgets; `kvlab.figures.lines` makes the same
series into a plotly chart with hovering. No arithmetic beyond placing points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.axes import log_ticks, short_number, ticks, with_unit
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture, element, number

DASHES = {"solid": None, "dashed": "7 4", "dotted": "2 4"}


@dataclass(frozen=True)
class Series:
    """A line: its name, its points, the role that colours it and a dash as second cue."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    role: str = "weights"
    dash: str = "solid"


@dataclass(frozen=True)
class Axis:
    """An axis: the quantity with its unit, and whether it is logarithmic.

    Numbers are written short, as 20M; with `unit` ("FLOP") each carries it, as 20 MFLOP. `full`
    writes them out, as 4,221, for units that take no prefix.
    """

    name: str
    log: bool = False
    base: int = 10
    unit: str = ""
    full: bool = False


@dataclass(frozen=True)
class Mark:
    """A vertical line at `x` with a word on it, such as where two lines cross."""

    name: str
    x: float


@dataclass
class _Scale:
    """From values to pixels along one axis."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    places: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.axis.log:
            self.places = log_ticks(self.low, self.high, self.axis.base)
        else:
            self.places = ticks(self.high, 5)

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self.low, self.high
        if self.axis.log:
            value, low, high = (math.log(max(v, 1e-300)) for v in (value, low, high))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def _range(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    if not values:
        raise InvalidArgument("series", values, "must hold at least one point")
    if not axis.log:
        return 0.0, max(*values, 1e-12)
    if min(values) <= 0:
        raise InvalidArgument("series", min(values), "must be above 0 on a logarithmic axis")
    return min(values), max(values)


def tick_words(value: float, axis: Axis) -> str:
    """Return the number at a tick: powers of two in full, all else as the axis asks.

    >>> tick_words(4096, Axis("tokens", log=True, base=2)), tick_words(4000, Axis("tokens"))
    ('4,096', '4K')
    """
    powers = axis.log and axis.base == 2 and value >= 1
    return f"{value:,.0f}" if powers else written(value, axis)


def written(value: float, axis: Axis) -> str:
    """Return a number with the unit of its axis.

    >>> written(4.173e16, Axis("work", unit="FLOP")), written(4221.4, Axis("ms", full=True))
    ('41.73 PFLOP', '4,221')
    """
    if axis.unit:
        return with_unit(value, axis.unit)
    full = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return full if axis.full else short_number(value)


def _grid(x: _Scale, y: _Scale) -> str:
    parts = []
    for value in y.places:
        level = y.at(value)
        parts.append(shapes.line(x.start, level, x.end, level, faint=True))
        words = tick_words(value, y.axis)
        parts.append(
            shapes.text(x.start - 8, level + 4, words, anchor="end", mono=True, quiet=True)
        )
    for value in x.places:
        spot = x.at(value)
        parts.append(shapes.line(spot, y.start, spot, y.start + 5, faint=True))
        words = tick_words(value, x.axis)
        parts.append(shapes.text(spot, y.start + 19, words, anchor="middle", mono=True, quiet=True))
    return "".join(parts)


def _path(series: Series, x: _Scale, y: _Scale) -> str:
    points = (
        f"{number(x.at(a))} {number(y.at(b))}" for a, b in zip(series.x, series.y, strict=True)
    )
    attributes: dict[str, object] = {"d": "M" + "L".join(points), "fill": "none"}
    attributes |= {"stroke": palette.color_of(series.role), "stroke-width": 2.5}
    attributes |= {"stroke-linejoin": "round", "stroke-dasharray": DASHES[series.dash]}
    return element("path", "", attributes)


def _end_labels(lines: Sequence[Series], x: _Scale, y: _Scale) -> str:
    """Names at the right ends, pushed apart where lines end close together."""
    wanted = sorted((y.at(line.y[-1]), line.name) for line in lines)
    parts, above = [], -math.inf
    room = y.start - 16 * (len(wanted) - 1)
    for level, name in wanted:
        above = max(min(level + 4, room + 4), above + 16)
        room += 16
        parts.append(shapes.text(x.end + 10, above, name))
    return "".join(parts)


def _mark(mark: Mark, level: int, x: _Scale, y: _Scale) -> str:
    """A dashed line with its word above; marks stack, so that their words never meet."""
    spot, half = x.at(mark.x), text_width(mark.name) / 2
    middle = min(max(spot, x.start + half), x.end - half)
    top = y.end - 4 - 17 * level
    stroke = shapes.line(spot, top, spot, y.start, dashed=True)
    return stroke + shapes.text(middle, top - 5, mark.name, anchor="middle")


def curve_chart(
    lines: Sequence[Series],
    *,
    x: Axis,
    y: Axis,
    marks: Sequence[Mark] = (),
    title: str = "",
    reading: str = "",
    width: float = 960,
    height: float = 280,
    scale: float = 1.0,
) -> Picture:
    """Return a line chart; `height` is that of the plot alone, in pixels.

    >>> line = Series("uncached", [1, 10, 100], [1, 100, 10000])
    >>> curve_chart([line], x=Axis("tokens", log=True), y=Axis("FLOPs", log=True)).label
    'FLOPs against tokens: uncached ends at 10K.'
    """
    sheet = Sheet(title, reading, width=width)
    names = max((text_width(line.name) for line in lines), default=0)
    top = sheet.top + 26 + 17 * len(marks)
    xs, ys = [v for s in lines for v in s.x], [v for s in lines for v in s.y]
    y_scale = _Scale(y, *_range(y, ys), top + height, top)
    numbers = max((text_width(tick_words(v, y), mono=True) for v in y_scale.places), default=0)
    left = MARGIN + max(56, numbers + 10)
    x_scale = _Scale(x, *_range(x, xs), left, width - MARGIN - names - 12)
    sheet.add(shapes.text(MARGIN, sheet.top + 11, y.name, quiet=True))
    sheet.add(_grid(x_scale, y_scale))
    for level, mark in enumerate(mark for mark in marks if min(xs) <= mark.x <= max(xs)):
        sheet.add(_mark(mark, level, x_scale, y_scale))
    sheet.add(*(_path(line, x_scale, y_scale) for line in lines))
    sheet.add(_end_labels(lines, x_scale, y_scale))
    bottom = top + height + 40
    middle = (x_scale.start + x_scale.end) / 2
    sheet.add(shapes.text(middle, bottom, x.name, anchor="middle", quiet=True))
    ends = ", ".join(f"{line.name} ends at {written(line.y[-1], y)}" for line in lines)
    label = f"{y.name} against {x.name}: {ends}."
    return sheet.close(bottom + 2, label=label, scale=scale)

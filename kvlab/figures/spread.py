"""Runs that were repeated: the middle as a line, all that happened as a pale band around it."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.curves import DASHES, Axis, written
from kvlab.figures.frame import Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.plane import Plane, Span, apart
from kvlab.figures.svg import Picture, element, number


@dataclass(frozen=True)
class Band:
    """One thing measured several times along `x`: the least, the middle and the most."""

    name: str
    x: Sequence[float]
    low: Sequence[float]
    middle: Sequence[float]
    high: Sequence[float]
    role: str = "weights"
    dash: str = "solid"


def spread_chart(
    bands: Sequence[Band],
    *,
    x: Axis,
    y: Axis,
    y_end: float | None = None,
    title: str = "",
    reading: str = "",
    height: float = 240,
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return the bands with their names at the right; both axes start at 0 unless logarithmic.

    >>> band = Band("MHA", [0, 10], [0, 0.8], [0, 0.9], [0, 1.0])
    >>> spread_chart([band], x=Axis("steps"), y=Axis("recall")).label
    'recall against steps: MHA ends at 0.9 (0.8 to 1).'
    """
    if not bands or not all(band.x for band in bands):
        raise InvalidArgument("bands", bands, "must hold at least one point each")
    xs = [value for band in bands for value in band.x]
    top = max(max(band.high) for band in bands) if y_end is None else y_end
    sheet = Sheet(title, reading, width=width)
    names = max(text_width(band.name) for band in bands) + 12
    low = min(xs) if x.log else 0.0
    plane = Plane(sheet, Span(x, low, max(xs)), Span(y, 0.0, top), height, names)
    bottom = plane.draw()
    for band in bands:
        sheet.add(_area(plane, band))
    for band in bands:
        sheet.add(_line(plane, band))
    ends = [plane.at(band.x[-1], band.middle[-1])[1] + 4 for band in bands]
    places = apart(ends, low=plane.top, high=plane.bottom + 4)
    for band, level in zip(bands, places, strict=True):
        sheet.add(shapes.text(plane.right + 10, level, band.name))
    return sheet.close(bottom, label=_label(bands, x, y), scale=scale)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _area(plane: Plane, band: Band) -> str:
    over = [plane.at(*point) for point in zip(band.x, band.high, strict=True)]
    under = [plane.at(*point) for point in zip(band.x, band.low, strict=True)]
    color = palette.color_of(band.role)
    path = "M" + _path([*over, *reversed(under)]) + "Z"
    return element("path", "", {"d": path, "fill": color, "fill-opacity": 0.22})


def _line(plane: Plane, band: Band) -> str:
    points = [plane.at(*point) for point in zip(band.x, band.middle, strict=True)]
    attributes: dict[str, object] = {"d": "M" + _path(points), "fill": "none"}
    attributes |= {"stroke": palette.color_of(band.role), "stroke-width": 2.5}
    attributes |= {"stroke-linejoin": "round", "stroke-dasharray": DASHES[band.dash]}
    return element("path", "", attributes)


def _label(bands: Sequence[Band], x: Axis, y: Axis) -> str:
    told = []
    for band in bands:
        ends = (written(values[-1], y) for values in (band.middle, band.low, band.high))
        middle, low, high = ends
        told.append(f"{band.name} ends at {middle} ({low} to {high})")
    return f"{y.name} against {x.name}: {', '.join(told)}."

"""A roofline: what a machine can reach at so many FLOPs a byte, and the passes placed under it.

Both axes are logarithmic. A pass left of the ridge waits for memory, one right of it for
arithmetic. Numbers come in; only places on the sheet are computed here.
"""

import math
from collections.abc import Sequence

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.axes import short_number
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.roofline_plane import Dot, Plane, Roof, grid, plane_for
from kvlab.figures.svg import Picture, element, number
from kvlab.figures.traffic import ROWS_HEIGHT, traffic_rows

__all__ = ["Dot", "Roof", "Traffic", "roofline"]

Traffic = tuple[tuple[int, str], tuple[int, str]]
"""Weights and cache of a pass, each as bytes and the words for them."""


def roofline(
    roof: Roof,
    dots: Sequence[Dot],
    *,
    title: str = "",
    reading: str = "",
    width: float = 960,
    height: float = 300,
    traffic: Traffic | None = None,
    scale: float = 1.0,
) -> Picture:
    """Return the roofline of one machine; `height` is that of the plot alone, in pixels.

    With `traffic` (weights, then cache) a bar below shows what a decode step moves.

    >>> roofline(Roof("H100", 989e12, 3.35e12), [Dot("decode", 1.0)]).label
    'Roofline of H100, ridge at 295 FLOPs a byte: decode at 1 waits for memory.'
    """
    for dot in dots:
        if not dot.intensity > 0:
            raise InvalidArgument("intensity", dot.intensity, "must be above 0")
    sheet = Sheet(title, reading, width=width)
    plane = plane_for(roof, dots, sheet.top + 24, height, width)
    sheet.add(shapes.text(MARGIN, sheet.top + 11, "FLOP/s", quiet=True))
    sheet.add(grid(plane), _halves(roof, plane), _roof(roof, plane))
    sheet.add(_dots(roof, dots, plane))
    bottom = plane.bottom + 40
    middle = (plane.left + plane.right) / 2
    words = "FLOPs for each byte moved"
    sheet.add(shapes.text(middle, bottom, words, anchor="middle", quiet=True))
    label = _label(roof, dots)
    if traffic is not None:
        weights, cache = traffic
        sheet.add(traffic_rows(18, bottom + 20, width - 36, weights=weights, cache=cache))
        bottom += 20 + ROWS_HEIGHT - 8
        label += f" A decode step moves weights {weights[1]} and cache {cache[1]}."
    return sheet.close(bottom + 2, label=label, scale=scale)


def _label(roof: Roof, dots: Sequence[Dot]) -> str:
    waits = ("arithmetic", "memory")
    said = [
        f"{d.name} at {short_number(round(d.intensity, 2))} waits for "
        f"{waits[d.intensity < roof.ridge]}"
        for d in dots
    ]
    start = f"Roofline of {roof.name}, ridge at {short_number(round(roof.ridge))} FLOPs a byte"
    return f"{start}: {', '.join(said)}." if said else f"{start}."


def _halves(roof: Roof, plane: Plane) -> str:
    """The ridge as a dashed line, with what a pass waits for on each side of it."""
    spot, _ = plane.at(roof.ridge, plane.y[0])
    parts = [shapes.line(spot, plane.top, spot, plane.bottom, dashed=True)]
    level = plane.top - 6
    for words, x, anchor in (
        ("\u2190 waits for memory", spot - 10, "end"),
        ("waits for arithmetic \u2192", spot + 10, "start"),
    ):
        room = spot - 10 - plane.left if anchor == "end" else plane.right - spot - 10
        if text_width(words) <= room:
            parts.append(shapes.text(x, level, words, anchor=anchor))
    return "".join(parts)


def _roof(roof: Roof, plane: Plane) -> str:
    """Slope and ceiling as one stroke in the page's ink; each says its rate."""
    start = max(plane.x[0], plane.y[0] / roof.bytes_per_second)
    corners = [start, roof.ridge, plane.x[1]]
    points = [plane.at(x, roof.height(x)) for x in corners]
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
    attributes = {"d": path, "fill": "none", "class": "ink", "stroke-width": 2}
    drawn = element("path", "", attributes | {"stroke-linejoin": "round"})
    words = _rate(roof.flops_per_second, "FLOP/s")
    drawn += shapes.text(points[2][0] - 6, points[2][1] - 8, words, anchor="end", mono=True)
    slope = _rate(roof.bytes_per_second, "B/s")
    (x1, y1), (x2, y2) = points[:2]  # the words end above the slope, a little before its middle
    spot = x1 + 0.45 * (x2 - x1) - 8, y1 + 0.45 * (y2 - y1) - 8
    drawn += shapes.text(*spot, slope, anchor="end", mono=True)
    ridge = f"ridge {roof.ridge:,.3g}"
    _, level = plane.at(roof.ridge, plane.y[0])
    return drawn + shapes.text(points[1][0] + 8, level - 8, ridge, mono=True)


def _rate(value: float, unit: str) -> str:
    """Return a rate in three digits, such as 3.35 TB/s."""
    words = short_number(float(f"{value:.3g}"))
    return f"{words[:-1]} {words[-1]}{unit}" if words[-1].isalpha() else f"{words} {unit}"


def _dots(roof: Roof, dots: Sequence[Dot], plane: Plane) -> str:
    """Discs with a letter; a dotted line up to the roof is what was left unused."""
    parts: list[str] = []
    taken: list[float] = []
    ordered = sorted(dots, key=lambda d: d.intensity)
    rates = [dot.flops_per_second or roof.height(dot.intensity) for dot in ordered]
    places = [plane.at(d.intensity, rate) for d, rate in zip(ordered, rates, strict=True)]
    for dot, (x, y) in zip(ordered, places, strict=True):
        _, above = plane.at(dot.intensity, roof.height(dot.intensity))
        color = palette.color_of(dot.role)
        if y - above > 16:
            parts.append(shapes.line(x, above, x, y - 9, dashed=True))
        disc = {"cx": x, "cy": y, "r": 9, "fill": color, "class": "ink", "stroke-width": 1.5}
        parts.append(element("circle", "", disc))
        if sum(math.dist((x, y), other) < 19 for other in places) == 1:  # else one hides another
            parts.append(shapes.text(x, y + 4, dot.letter, size=11, anchor="middle", on=color))
        parts.append(_name(dot, x, y, plane, taken))
    return "".join(parts)


def _name(dot: Dot, x: float, y: float, plane: Plane, taken: list[float]) -> str:
    """The name right of its disc and below the slope, or left of it where room ends."""
    level = y + 20 if y + 26 < plane.bottom else y + 4
    while any(abs(level - other) < 15 for other in taken) and level + 15 < plane.bottom - 6:
        level += 15
    taken.append(level)
    fits = x + 14 + text_width(dot.name) <= plane.right
    return shapes.text(
        x + 14 if fits else x - 14, level, dot.name, anchor="start" if fits else "end"
    )

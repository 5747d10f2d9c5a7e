"""The parts of a memory bar: segments, words above it, markers through it, the axis below."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.arithmetic import units
from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.axes import ticks
from kvlab.figures.measure import shorten_to, text_width

UNITS: dict[str, int] = {
    "B": 1,
    "KiB": units.KIB,
    "MiB": units.MIB,
    "GiB": units.GIB,
    "TiB": units.TIB,
    "kB": units.KB,
    "MB": units.MB,
    "GB": units.GB,
    "TB": units.TB,
}
"""Bytes in each unit that a bar can be drawn in."""

BAR_HEIGHT = 46


@dataclass(frozen=True)
class Segment:
    """A part of a memory bar: its name, its size in bytes, a line of detail and its role."""

    name: str
    num_bytes: int
    role: str = "weights"
    detail: str = ""
    hatched: bool = False


@dataclass(frozen=True)
class Marker:
    """A place on the bar worth a word, at so many bytes from its left end."""

    name: str
    num_bytes: int


def unit_size(unit: str) -> int:
    """Return the bytes in a unit.

    >>> unit_size("GiB")
    1073741824
    """
    if unit not in UNITS:
        raise InvalidArgument("unit", unit, f"must be one of {', '.join(UNITS)}")
    return UNITS[unit]


def _inside(x: float, y: float, width: float, segment: Segment) -> str:
    """Name and detail within the segment, or nothing if they do not fit."""
    color = palette.color_of(segment.role)
    on = None if segment.role == "free" else color
    middle = x + width / 2
    if segment.hatched or text_width(segment.name, 12, bold=True) > width - 8:
        return ""
    fits = segment.detail and text_width(segment.detail, 12, mono=True) <= width - 8
    rise = 20 if fits else 28
    name = shapes.text(middle, y + rise, segment.name, anchor="middle", bold=True, on=on)
    if not fits:
        return name
    return name + shapes.text(middle, y + 37, segment.detail, anchor="middle", mono=True, on=on)


def segment_box(x: float, y: float, width: float, segment: Segment) -> str:
    """Return a part of the bar, with its words where they fit; 2 pixels lie between parts."""
    drawn = max(width - 2, 1)
    if segment.hatched:
        role = segment.role
        return shapes.hatch(x, y, drawn, BAR_HEIGHT, role=role, kind="cell")
    opacity = 0.15 if segment.role == "free" else None
    color = palette.color_of(segment.role)
    box = shapes.rect(x, y, drawn, BAR_HEIGHT, fill=color, opacity=opacity, kind="cell")
    return box + _inside(x, y, drawn, segment)


def words_above(spots: Sequence[tuple[float, str]], left: float, right: float, y: float) -> str:
    """Return words for what did not fit inside, pushed apart and kept within the sheet."""
    parts, edge = [], left
    for middle, words in spots:
        width = text_width(words)
        start = max(edge, min(middle - width / 2, right - width))
        shown = shorten_to(words, right - start + 0.5)  # half a pixel for rounding
        parts.append(shapes.text(start, y, shown, quiet=True))
        edge = start + text_width(shown) + 14
    return "".join(parts)


def byte_axis(left: float, y: float, pixels_per_byte: float, end: int, unit: str) -> str:
    """Return the scale below the bar: ticks at round numbers of the unit."""
    parts = []
    for value in ticks(end / unit_size(unit), 5):
        x = left + value * unit_size(unit) * pixels_per_byte
        parts.append(shapes.line(x, y, x, y + 5, faint=True))
        words = f"{value:,g} {unit}"
        parts.append(shapes.text(x, y + 19, words, anchor="middle", mono=True, quiet=True))
    return "".join(parts)


def marker_line(x: float, top: float, bottom: float, words: str, left: float, right: float) -> str:
    """Return a stroke through the bar and its words below, kept between the bar\'s ends."""
    half = text_width(words) / 2
    middle = min(max(x, left + half), right - half)
    strokes = shapes.line(x, top - 7, x, top, width=2)
    strokes += shapes.line(x, bottom, x, bottom + 12, width=2)
    return strokes + shapes.text(middle, bottom + 26, words, anchor="middle")


def ghost_bar(x: float, y: float, width: float, words: str) -> str:
    """Return the dashed outline of a guess, with its words."""
    outline = shapes.rect(x, y, width, 14, stroke="ink", dashed=True, radius=3)
    return outline + shapes.text(x + width + 8, y + 11, words)

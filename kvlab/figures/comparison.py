"""Bars below one another, each with its name at the left and its number at its end.

The numbers come in twice: as a length and as the words to show, so that units are the caller's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import shorten_to, text_width
from kvlab.figures.svg import Picture

_HEIGHT, _PITCH = 26, 36


@dataclass(frozen=True)
class Bar:
    """One bar: a name, its length in any unit, the words at its end, and how it is drawn."""

    name: str
    length: float
    words: str
    role: str = "weights"
    hatched: bool = False
    ghost: float | None = None


def _bar(x: float, y: float, pixels: float, bar: Bar, ghost: float | None) -> str:
    width = max(bar.length * pixels, 1)
    if bar.hatched:
        drawn = shapes.hatch(x, y, width, _HEIGHT, role=bar.role, kind="cell")
    else:
        color = palette.color_of(bar.role)
        opacity = 0.3 if bar.role == "free" else None
        drawn = shapes.rect(x, y, width, _HEIGHT, fill=color, opacity=opacity, kind="cell")
    end = width
    if ghost is not None:
        end = max(width, ghost * pixels)
        outline = max(ghost * pixels, 1)
        drawn += shapes.rect(x, y - 3, outline, _HEIGHT + 6, stroke="ink", dashed=True)
    return drawn + shapes.text(x + end + 8, y + 17.5, bar.words, mono=True)


def compare_bars(
    bars: Sequence[Bar],
    *,
    title: str = "",
    reading: str = "",
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return labelled bars on one scale from 0; a `ghost` is the dashed outline of a guess.

    >>> compare_bars([Bar("cached", 2999, "2,999"), Bar("uncached", 2499500, "2,499,500")]).label
    'cached 2,999; uncached 2,499,500.'
    """
    if not bars:
        raise InvalidArgument("bars", bars, "must hold at least one bar")
    sheet = Sheet(title, reading, width=width)
    names = min(max(text_width(b.name) for b in bars), width * 0.3)
    words = max(text_width(b.words, mono=True) for b in bars)
    left = MARGIN + names + 14
    longest = max(max(b.length, b.ghost or 0) for b in bars)
    pixels = (width - MARGIN - words - 10 - left) / max(longest, 1e-12)
    y = sheet.top + 2
    for bar in bars:
        sheet.add(shapes.text(MARGIN, y + 17.5, shorten_to(bar.name, names + 2), quiet=True))
        sheet.add(_bar(left, y, pixels, bar, bar.ghost))
        y += _PITCH
    sheet.add(shapes.line(left - 1, sheet.top - 4, left - 1, y - _PITCH + _HEIGHT + 6, faint=True))
    label = "; ".join(f"{b.name} {b.words}" for b in bars) + "."
    return sheet.close(y - _PITCH + _HEIGHT + 4, label=label, scale=scale)

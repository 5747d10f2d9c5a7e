"""Channels as bars: how large each becomes, and how much of it a stored copy gets wrong.

Numbers come in; the picture compares heads, or keys with values, on scales of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.comparison import Bar
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture, element, number

_NAMES, _WORDS, _PLOT = 150, 170, 92


@dataclass(frozen=True)
class Channels:
    """A row of bars, one a channel: `sizes` pale, `errors` (as large or smaller) full before them.

    `line` draws a level with `words` beside it. All sizes are 0 or more, in one unit.
    """

    name: str
    sizes: Sequence[float]
    role: str = "key"
    errors: Sequence[float] = ()
    line: float | None = None
    words: str = ""


def channel_map(
    rows: Sequence[Channels],
    *,
    bars: Sequence[Bar] = (),
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return rows of channels below one another, after `bars` that share one scale.

    A bar's `ghost` is its dashed outline, such as what 16 bits would take.

    >>> channel_map([Channels("keys", [1, 2, 8], line=2, words="median 2")]).label
    'keys: 3 channels, the largest 8. median 2.'
    """
    if not rows:
        raise InvalidArgument("rows", rows, "must hold at least one row of channels")
    sheet = Sheet(title, reading)
    y = _bars(sheet, sheet.top, bars) if bars else sheet.top
    told = [f"{bar.name}: {bar.words}." for bar in bars]
    for row in rows:
        _row(sheet, y, row)
        told.append(f"{row.name}: {len(row.sizes)} channels, the largest {max(row.sizes):.3g}.")
        told += [f"{row.words}."] if row.words else []
        y += _PLOT + 20
    label = " ".join(told)
    return sheet.close(y - 8, label=label, scale=scale)


def _bars(sheet: Sheet, top: float, bars: Sequence[Bar]) -> float:
    left, longest = MARGIN + _NAMES, max(max(bar.length, bar.ghost or 0) for bar in bars)
    words = max(text_width(bar.words, mono=True) for bar in bars)
    room = sheet.width - MARGIN - left - words - 12
    for bar in bars:
        width, ghost = (room * (size or 0) / (longest or 1) for size in (bar.length, bar.ghost))
        sheet.add(shapes.text(MARGIN, top + 16.5, bar.name, quiet=True))
        color = palette.color_of(bar.role)
        sheet.add(shapes.rect(left, top, max(width, 1), 24, fill=color, kind="cell"))
        if bar.ghost:
            sheet.add(shapes.rect(left, top - 2.5, ghost, 29, stroke="ink", dashed=True))
        sheet.add(shapes.text(left + room + 12, top + 16.5, bar.words, mono=True))
        top += 36
    return top + 8


def _row(sheet: Sheet, top: float, row: Channels) -> None:
    """Draw one row of channels; each row is full at its own largest channel."""
    left = MARGIN + _NAMES
    right = sheet.width - MARGIN - (_WORDS if row.words else 0)
    bottom, pitch = top + _PLOT, (right - left) / len(row.sizes)
    full, color = max(*row.sizes, row.line or 0) or 1, palette.color_of(row.role)
    sheet.add(shapes.text(MARGIN, top + 12, row.name, bold=True))
    sheet.add(shapes.text(left - 8, top + 9, f"{full:.3g}", anchor="end", mono=True, quiet=True))
    sheet.add(shapes.text(left - 8, bottom, "0", anchor="end", mono=True, quiet=True))
    drawn = [(row.sizes, 0.34 if row.errors else 0.9), (row.errors, 1.0)]
    for levels, opacity in drawn:
        path = "".join(
            f"M{number(left + pitch * place)} {number(bottom)}v{number(-_PLOT * level / full)}"
            f"h{number(max(pitch - 1.5, 1))}V{number(bottom)}z"
            for place, level in enumerate(levels)
        )
        if path:
            attributes = {"d": path, "fill": color, "fill-opacity": opacity}
            sheet.add(element("path", "", attributes))
    sheet.add(shapes.line(left, bottom, right, bottom, faint=True))
    if row.line is not None:
        y = bottom - _PLOT * row.line / full
        sheet.add(shapes.line(left, y, right, y, dashed=True))
    if row.words:
        y = bottom - _PLOT * row.line / full + 4 if row.line is not None else top + _PLOT / 2
        y = min(max(y, top + 10), bottom - 2)
        sheet.add(shapes.text(right + 8, y, row.words, quiet=True))

"""Models as rows: how many query heads share a KV head, and the bytes that a token takes.

Two bars to a row, each measure on one scale for all rows. Sorting is done elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import shorten_to, text_width
from kvlab.figures.svg import Picture

_PITCH, _HEIGHT = 22, 15
_RANK, _NAME, _KIND, _RATIO, _GAP = 34, 216, 58, 250, 12


@dataclass(frozen=True)
class ModelRow:
    """One model: place, name, kind, its two measures with their words; `marked` stands out.

    `shared` is None for a model that has no KV heads to share; its words say so.
    """

    rank: int
    name: str
    kind: str
    shared: float | None
    shared_words: str
    num_bytes: int
    bytes_words: str
    marked: bool = False


def catalogue_chart(
    rows: Sequence[ModelRow],
    *,
    most_shared: float,
    most_bytes: int,
    title: str = "",
    reading: str = "",
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return the rows; `most_shared` and `most_bytes` are the ends of the two scales.

    >>> row = ModelRow(1, "falcon-7b", "MQA", 71, "71 on 1", 8192, "8 KiB")
    >>> catalogue_chart([row], most_shared=71, most_bytes=8192).label
    '1: falcon-7b, MQA, 71 on 1, 8 KiB.'
    """
    if not rows:
        raise InvalidArgument("rows", rows, "must hold at least one model")
    sheet = Sheet(title, reading, width=width)
    x_kind = MARGIN + _RANK + _NAME
    x_ratio, x_bytes = x_kind + _KIND, x_kind + _KIND + _RATIO + _GAP
    for x, words in (
        (x_kind, "kind"),
        (x_ratio, "query heads on KV heads"),
        (x_bytes, "a token, 16 bit"),
    ):
        sheet.add(shapes.text(x, sheet.top + 11, words, quiet=True))
    words = max(text_width(row.bytes_words, mono=True) for row in rows) + 12
    room_bytes = width - MARGIN - x_bytes - words
    room_ratio = _RATIO - max(text_width(row.shared_words, mono=True) for row in rows) - 12
    y = sheet.top + 20
    for row in rows:
        sheet.add(_names(row, x_kind, y, width))
        share = 0.0 if row.shared is None else room_ratio * row.shared / most_shared
        sheet.add(_bar(x_ratio, y, share, "query", row.shared_words))
        size = room_bytes * row.num_bytes / most_bytes
        sheet.add(_bar(x_bytes, y, max(size, 1), "value", row.bytes_words))
        y += _PITCH
    return sheet.close(y - _PITCH + _HEIGHT + 4, label=_label(rows), scale=scale)


def _names(row: ModelRow, x_kind: float, y: float, width: float) -> str:
    """Rank, name and kind; a marked row is framed and bold."""
    base, parts = y + 12, ""
    if row.marked:
        box = (MARGIN - 6, y - 3, width - 2 * MARGIN + 12, _HEIGHT + 6)
        parts += shapes.rect(*box, stroke="ink", line_width=1)
    rank = shapes.text(MARGIN + 24, base, str(row.rank), anchor="end", mono=True, quiet=True)
    room = _NAME - 10 if not row.marked else (_NAME - 10) / 1.1
    name = shorten_to(row.name, room)
    parts += rank + shapes.text(MARGIN + _RANK, base, name, bold=row.marked)
    return parts + shapes.text(x_kind, base, row.kind, quiet=not row.marked)


def _bar(x: float, y: float, length: float, role: str, words: str) -> str:
    drawn = ""
    if length > 0:
        color = palette.color_of(role)
        drawn = shapes.rect(x, y, length, _HEIGHT, fill=color, radius=3, kind="cell")
    return drawn + shapes.text(x + length + 6 * (length > 0), y + 12, words, mono=True)


def _label(rows: Sequence[ModelRow]) -> str:
    told = [f"{r.rank}: {r.name}, {r.kind}, {r.shared_words}, {r.bytes_words}" for r in rows[:6]]
    more = len(rows) - len(told)
    return "; ".join(told) + (f"; {more} more." if more else ".")

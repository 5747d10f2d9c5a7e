"""Two allocators side by side on one stream of requests: a few large numbers over a memory map."""

from collections.abc import Mapping, Sequence

from kvlab.figures import palette, shapes
from kvlab.figures.allocators import Lane
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.slot_map import Field, draw_slots, slot_key
from kvlab.figures.svg import Picture

_GAP = 28


def allocator_columns(
    columns: Sequence[Lane],
    *,
    num_slots: int,
    row_slots: int,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return the columns side by side, each memory to scale, with one key below.

    >>> one = Lane("blocks", [], {"running": "3"})
    >>> allocator_columns([one], num_slots=64, row_slots=32).label
    'blocks: running 3.'
    """
    sheet = Sheet(title, reading)
    width = (sheet.width - 2 * MARGIN - _GAP * (len(columns) - 1)) / len(columns)
    top, bottom = sheet.top, sheet.top
    for place, column in enumerate(columns):
        x = MARGIN + (width + _GAP) * place
        sheet.add(_head(x, top, column), _numbers(x, top + 34, column.numbers, width))
        field = Field(x, top + 96, width, num_slots, row_slots)
        sheet.add(draw_slots(field, column.pieces, wanted=column.wanted))
        bottom = field.bottom
    sheet.add(slot_key(MARGIN, bottom + 12))
    return sheet.close(bottom + 26, label=" ".join(map(_said, columns)), scale=scale)


def _said(column: Lane) -> str:
    numbers = ", ".join(f"{name} {value}" for name, value in column.numbers.items())
    return f"{column.name}: {numbers}{'; ' if column.refuses else ''}{column.refuses}."


def _head(x: float, y: float, column: Lane) -> str:
    """The name, and beside it the refusal on the colour of waste."""
    name = shapes.text(x, y + 17, column.name, size=17, bold=True)
    if not column.refuses:
        return name
    color, left = palette.ROLES["wasted"], x + text_width(column.name, 17, bold=True) + 14
    patch = shapes.rect(
        left, y, text_width(column.refuses, 14, bold=True) + 18, 24, fill=color, kind="cell"
    )
    words = shapes.text(left + 9, y + 17, column.refuses, size=14, bold=True, on=color)
    return name + patch + words


def _numbers(x: float, y: float, numbers: Mapping[str, str], width: float) -> str:
    parts, step = [], width / max(len(numbers), 1)
    for place, (name, value) in enumerate(numbers.items()):
        left = x + step * place
        parts.append(shapes.text(left, y + 24, value, size=24, bold=True, mono=True))
        parts.append(shapes.text(left, y + 44, name, size=13, quiet=True))
    return "".join(parts)

"""Two allocators, one above the other, on one stream of requests: each a map and its numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet, readout_rows
from kvlab.figures.measure import text_width
from kvlab.figures.slot_map import Field, draw_slots, slot_key
from kvlab.figures.svg import Picture
from kvlab.paging.pieces import Piece

MAP_WIDTH, NUMBERS_WIDTH = 660, 228


@dataclass(frozen=True)
class Lane:
    """One allocator: its name, what it holds, what it says, and its numbers by name.

    `refuses` is the request that waits for room, in words; "" where none does. `wanted` is the
    length of the next piece: shorter holes are hatched as too short.
    """

    name: str
    pieces: Sequence[Piece]
    numbers: Mapping[str, str]
    refuses: str = ""
    wanted: int = 0


def allocators(
    lanes: Sequence[Lane],
    *,
    num_slots: int,
    row_slots: int,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return the lanes one below another, memory to scale at the left and numbers at the right.

    >>> allocators([Lane("blocks", [], {"running": "0"})], num_slots=64, row_slots=32).label
    'blocks: running 0.'
    """
    sheet = Sheet(title, reading)
    top, labels = sheet.top, []
    for lane in lanes:
        sheet.add(shapes.text(MARGIN, top + 12, lane.name, size=13, bold=True))
        if lane.refuses:
            sheet.add(_refusal(MARGIN + text_width(lane.name, 13, bold=True) + 14, top, lane))
        field = Field(MARGIN, top + 22, MAP_WIDTH, num_slots, row_slots)
        sheet.add(draw_slots(field, lane.pieces, wanted=lane.wanted))
        right = sheet.width - MARGIN - NUMBERS_WIDTH
        sheet.add(readout_rows(right, field.top - 2, lane.numbers, width=NUMBERS_WIDTH))
        top = max(field.bottom, field.top - 2 + 22 * len(lane.numbers)) + 18
        said = ", ".join(f"{name} {value}" for name, value in lane.numbers.items())
        labels.append(f"{lane.name}: {said}" + (f"; {lane.refuses}" if lane.refuses else "") + ".")
    sheet.add(slot_key(MARGIN, top))
    return sheet.close(top + 14, label=" ".join(labels), scale=scale)


def _refusal(x: float, top: float, lane: Lane) -> str:
    """The words of a refusal on the colour of waste."""
    color = palette.ROLES["wasted"]
    width = text_width(lane.refuses, bold=True) + 16
    patch = shapes.rect(x, top - 3, width, 20, fill=color, radius=4, kind="cell")
    return patch + shapes.text(x + 8, top + 11.5, lane.refuses, bold=True, on=color)

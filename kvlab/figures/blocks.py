"""Physical blocks as a grid with their numbers, and block tables beside it.

A block shows the letter of the request it belongs to; one held by several is in the colour of
sharing. The part of a block that is allocated but empty is hatched. Each block is drawn and
counted once, whoever shares it. Which block belongs to whom comes in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.svg import Picture

_SIDE, _PITCH_X, _PITCH_Y = 36, 42, 58
_TABLE_WIDTH = 180


@dataclass(frozen=True)
class Block:
    """One physical block: its number, the 0-based requests that hold it, and its filled slots."""

    block_id: int
    owners: tuple[int, ...] = ()
    filled: int = 0


def _letters(owners: Sequence[int]) -> str:
    names = [palette.request_letter(owner) for owner in owners]
    return "".join(names) if len(names) < 3 else f"{len(names)}x"


def _color(owners: Sequence[int]) -> str:
    return palette.ROLES["shared"] if len(owners) > 1 else palette.request_color(owners[0])


def _block(x: float, y: float, block: Block, block_size: int, *, fresh: bool) -> str:
    """One block, filled from the bottom up, its number below."""
    number = shapes.text(
        x + _SIDE / 2, y + _SIDE + 14, str(block.block_id), size=11, anchor="middle", mono=True,
        quiet=True,
    )  # fmt: skip
    stroke = "ink" if fresh else palette.NEUTRAL
    frame = shapes.rect(x, y, _SIDE, _SIDE, stroke=stroke, line_width=2 if fresh else 1)
    if not block.owners:
        free = shapes.rect(x, y, _SIDE, _SIDE, fill=palette.NEUTRAL, opacity=0.1, kind="cell")
        return free + frame + number
    color = _color(block.owners)
    full = _SIDE * block.filled / block_size
    drawn = shapes.rect(x, y, _SIDE, _SIDE, fill=color, kind="cell")
    if full < _SIDE:
        drawn = shapes.hatch(x, y, _SIDE, _SIDE, kind="cell")
        drawn += shapes.rect(x, y + _SIDE - full, _SIDE, full, fill=color) if full else ""
    return drawn + _letter(x, y, full, block.owners, color) + frame + number


def _letter(x: float, y: float, full: float, owners: Sequence[int], color: str) -> str:
    """The letter on the filled part, or on a small patch of page where that is too low."""
    middle, name = x + _SIDE / 2, _letters(owners)
    if full >= 16:
        baseline = y + _SIDE - full / 2 + 4.5
        return shapes.text(middle, baseline, name, size=13, anchor="middle", bold=True, on=color)
    width = 8 + 9 * len(name)
    patch = shapes.rect(middle - width / 2, y + 3, width, 16, radius=3, fill="ground")
    return patch + shapes.text(middle, y + 15.5, name, size=13, anchor="middle", bold=True)


def _table(x: float, y: float, request: int, rows: Sequence[int], owners: Mapping[int, int]) -> str:
    """The block table of one request: logical number, arrow, physical number."""
    title = f"block table of request {palette.request_letter(request)}"
    parts = [shapes.text(x, y + 11, title, quiet=True)]
    for logical, physical in enumerate(rows):
        top = y + 24 + 26 * logical
        shared = owners.get(physical, 1) > 1
        color = palette.ROLES["shared"] if shared else palette.request_color(request)
        grey = palette.NEUTRAL
        parts.append(shapes.rect(x, top, 46, 20, fill=grey, opacity=0.15, kind="cell"))
        parts.append(shapes.text(x + 23, top + 14.5, str(logical), anchor="middle", mono=True))
        parts.append(shapes.arrow(x + 53, top + 10, x + 69, top + 10, head=3.5))
        parts.append(shapes.rect(x + 76, top, 46, 20, fill=color, kind="cell"))
        shown = shapes.text(x + 99, top + 14.5, str(physical), anchor="middle", mono=True, on=color)
        parts.append(shown)
    return "".join(parts)


def _foot(x: float, y: float, empty: int, slots: int, free: int, count: int) -> str:
    share = f" ({100 * empty / slots:.1f}%)" if slots else ""
    first = f"allocated, unused: {empty} of {slots} slots{share}"
    second = f"free: {free} of {count} blocks"
    parts = shapes.hatch(x, y, 14, 14) + shapes.text(x + 22, y + 11.5, first)
    return parts + shapes.text(x + 350, y + 11.5, second)


def block_map(
    blocks: Sequence[Block],
    *,
    block_size: int,
    table_of: int | None = None,
    table: Sequence[int] = (),
    fresh: Sequence[int] = (),
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return the map of physical blocks of `block_size` tokens, with one request's block table.

    `fresh` lists the blocks that the last event touched; they get a strong outline.

    >>> block_map([Block(0, (0,), 16), Block(1, (0,), 1), Block(2)], block_size=16).label
    '3 blocks of 16 tokens: 1 free; 15 of 32 allocated slots are empty.'
    """
    for block in blocks:
        if not 0 <= block.filled <= block_size:
            raise InvalidArgument("filled", block.filled, f"must be from 0 to {block_size}")
    sheet = Sheet(title, reading)
    sheet.add(shapes.text(MARGIN, sheet.top + 11, f"physical blocks of {block_size} tokens"))
    side = _TABLE_WIDTH if table_of is not None else 0
    across = int((sheet.width - 2 * MARGIN - side) // _PITCH_X)
    for index, block in enumerate(blocks):
        row, column = divmod(index, across)
        x, y = MARGIN + column * _PITCH_X, sheet.top + 22 + row * _PITCH_Y
        sheet.add(_block(x, y, block, block_size, fresh=block.block_id in fresh))
    bottom = sheet.top + 22 + _PITCH_Y * -(-len(blocks) // across)
    if table_of is not None:
        held = {block.block_id: len(block.owners) for block in blocks}
        left = sheet.width - MARGIN - _TABLE_WIDTH + 24
        sheet.add(_table(left, sheet.top, table_of, table, held))
        bottom = max(bottom, sheet.top + 24 + 26 * len(table))
    used = [block for block in blocks if block.owners]
    slots = block_size * len(used)
    empty = slots - sum(block.filled for block in used)
    free = len(blocks) - len(used)
    sheet.add(_foot(MARGIN, bottom + 8, empty, slots, free, len(blocks)))
    label = f"{len(blocks)} blocks of {block_size} tokens: {free} free; "
    label += f"{empty} of {slots} allocated slots are empty."
    return sheet.close(bottom + 22, label=label, scale=scale)

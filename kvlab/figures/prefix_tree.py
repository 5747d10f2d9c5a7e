"""Cached blocks as a tree: a block stands right of the block before it, with what is in it.

A block held by several requests has the colour of sharing, one held by a single request that
request's colour; an idle one is an outline. Which block is where comes in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import shorten_to
from kvlab.figures.svg import Picture, element, number

_HEIGHT, _PITCH, _GAP = 40, 54, 26
_MOST_WIDTH, _MOST_COLUMNS = 190, 12


@dataclass(frozen=True)
class TreeBlock:
    """One block: its number, the one before it (-1: none), its words, the requests that hold it.

    `findable` blocks can be shared by whoever comes; `fresh` ones were just computed, `hit` ones
    just shared: both get a strong outline, a hit a tick as well.
    """

    block_id: int
    parent: int
    words: str
    owners: tuple[int, ...] = ()
    findable: bool = True
    fresh: bool = False
    hit: bool = False


def prefix_tree(
    blocks: Sequence[TreeBlock],
    *,
    title: str = "",
    reading: str = "",
    empty: str = "nothing is cached",
    scale: float = 1.0,
) -> Picture:
    """Return the tree, parents left of children; blocks come in with parents first.

    >>> blocks = [TreeBlock(0, -1, "you are", (0, 1)), TreeBlock(1, 0, "hello", (0,), False)]
    >>> prefix_tree(blocks).label
    '2 blocks: 1 shared, 1 of a single request, 0 idle. Longest chain 2.'
    """
    depth_of = _depths(blocks)
    sheet = Sheet(title, reading)
    if not blocks:
        sheet.add(shapes.text(MARGIN, sheet.top + 16, empty, quiet=True))
        return sheet.close(sheet.top + 24, label=f"No block: {empty}.", scale=scale)
    across = max(depth_of.values()) + 1
    if across > _MOST_COLUMNS:
        rule = f"a chain of more than {_MOST_COLUMNS} blocks can't be read in one picture"
        raise InvalidArgument("blocks", across, rule)
    room = (sheet.width - 2 * MARGIN - (across - 1) * _GAP) / across
    width = min(_MOST_WIDTH, room)
    row_of = _rows(blocks)
    at = {
        block.block_id: (
            MARGIN + depth_of[block.block_id] * (width + _GAP),
            sheet.top + row_of[block.block_id] * _PITCH,
        )
        for block in blocks
    }
    for block in blocks:
        if block.parent in at:
            sheet.add(_link(at[block.parent], at[block.block_id], width))
    for block in blocks:
        sheet.add(_block(*at[block.block_id], width, block))
    bottom = sheet.top + (max(row_of.values()) + 1) * _PITCH
    return sheet.close(bottom - 8, label=_label(blocks, across), scale=scale)


def _depths(blocks: Sequence[TreeBlock]) -> dict[int, int]:
    depth_of: dict[int, int] = {}
    for block in blocks:
        if block.parent >= 0 and block.parent not in depth_of:
            rule = f"the block before {block.block_id} must come before it"
            raise InvalidArgument("blocks", block.parent, rule)
        depth_of[block.block_id] = depth_of.get(block.parent, -1) + 1
    return depth_of


def _rows(blocks: Sequence[TreeBlock]) -> dict[int, int]:
    """A chain goes on in its row; every other child begins a new one."""
    row_of: dict[int, int] = {}
    taken: set[int] = set()
    last = -1
    for block in blocks:
        if block.parent in row_of and block.parent not in taken:
            row_of[block.block_id] = row_of[block.parent]
            taken.add(block.parent)
        else:
            last += 1
            row_of[block.block_id] = last
        last = max(last, row_of[block.block_id])
    return row_of


def _link(start: tuple[float, float], end: tuple[float, float], width: float) -> str:
    x1, y1 = start[0] + width, start[1] + _HEIGHT / 2
    x2, y2 = end[0], end[1] + _HEIGHT / 2
    bend = x1 + _GAP / 2
    path = f"M{number(x1)} {number(y1)}H{number(bend)}V{number(y2)}H{number(x2)}"
    look = {"d": path, "fill": "none", "class": "ink", "stroke-width": 1.5, "stroke-opacity": 0.5}
    return element("path", "", look)


def _block(x: float, y: float, width: float, block: TreeBlock) -> str:
    strong = block.fresh or block.hit
    text = shorten_to(block.words, width - 14, 12)
    foot = shorten_to(_foot(block), width - 14, 11)
    look: Mapping[str, object] = {"stroke": "ink", "line_width": 2.5 if strong else 1}
    if block.owners:
        shared = len(block.owners) > 1
        color = palette.ROLES["shared"] if shared else palette.request_color(block.owners[0])
        box = shapes.rect(x, y, width, _HEIGHT, fill=color, kind="cell", **look)
        words = shapes.text(x + 7, y + 17, text, on=color)
        below = shapes.text(x + 7, y + 32, foot, size=11, on=color)
        return box + words + below
    box = shapes.rect(x, y, width, _HEIGHT, fill=palette.NEUTRAL, opacity=0.1, kind="cell")
    box += shapes.rect(x, y, width, _HEIGHT, stroke="ink", dashed=True, line_width=1)
    return box + shapes.text(x + 7, y + 17, text) + shapes.text(x + 7, y + 32, foot, size=11)


def _foot(block: TreeBlock) -> str:
    """The block's number, who holds it, and whether it can be found."""
    letters = [palette.request_letter(owner) for owner in block.owners]
    held = " ".join(letters) if len(letters) < 6 else f"{len(letters)} requests"
    parts = [f"block {block.block_id}", held or "idle"]
    if block.hit:
        parts.append("\u2713 shared")
    elif not block.findable:
        parts.append("part full")
    return " \u00b7 ".join(parts)


def _label(blocks: Sequence[TreeBlock], across: int) -> str:
    shared = sum(len(block.owners) > 1 for block in blocks)
    single = sum(len(block.owners) == 1 for block in blocks)
    count = f"{len(blocks)} block{'' if len(blocks) == 1 else 's'}"
    said = f"{count}: {shared} shared, {single} of a single request,"
    return f"{said} {len(blocks) - shared - single} idle. Longest chain {across}."

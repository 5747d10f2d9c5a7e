"""Memory as rows of slots, to scale: who holds which slots, and what is in them.

Full colour holds a token. Dashed is reserved: a token will come. Hatched is internal waste: no
token will ever come. Grey hatching is external: free, but too short to be of use. Where there are
more pieces than an eye can tell apart, cells of equal size show how full their slots are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture
from kvlab.paging.pieces import Piece

MAX_PIECES = 160
"""More pieces than this are drawn as cells of equal size."""

ROW, GAP, CELLS_IN_ROW = 20, 5, 32


@dataclass(frozen=True)
class Field:
    """Where rows of slots lie on a sheet: left, top and width in pixels, slots in all and a row."""

    left: float
    top: float
    width: float
    num_slots: int
    row_slots: int

    @property
    def num_rows(self) -> int:
        """Rows, the last one perhaps shorter."""
        return -(-self.num_slots // self.row_slots)

    @property
    def bottom(self) -> float:
        """Where the lowest row ends."""
        return self.top + self.num_rows * (ROW + GAP) - GAP

    def strips(self, start: int, end: int) -> Iterator[tuple[float, float, float]]:
        """Yield x, y and width of slots start to end - 1, one strip for each row that they meet."""
        pixels = self.width / self.row_slots
        while start < end:
            row = start // self.row_slots
            stop = min(end, (row + 1) * self.row_slots)
            x = self.left + (start - row * self.row_slots) * pixels
            yield x, self.top + row * (ROW + GAP), (stop - start) * pixels
            start = stop


def draw_slots(
    field: Field, pieces: Sequence[Piece], *, wanted: int = 0, coarse: bool = False
) -> str:
    """Return the markup of a map; free slots in holes shorter than `wanted` count as external."""
    ordered = sorted(pieces, key=lambda piece: piece.start)
    if any(piece.start + piece.length > field.num_slots for piece in ordered):
        raise InvalidArgument("pieces", len(pieces), f"must lie in the {field.num_slots:,} slots")
    if coarse or len(ordered) > MAX_PIECES:
        return "".join(_coarse(field, ordered))
    grey = palette.NEUTRAL
    parts = [
        shapes.rect(x, y, width, ROW, fill=grey, opacity=0.12, stroke=grey, line_width=1)
        for x, y, width in field.strips(0, field.num_slots)
    ]
    for start, end in _holes(field, ordered):
        if end - start < wanted:
            parts += [shapes.hatch(*at, ROW, role="free") for at in field.strips(start, end)]
    for piece in ordered:
        parts += _piece(field, piece)
    return "".join(parts)


def _holes(field: Field, ordered: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    last = 0
    for piece in ordered:
        if piece.start > last:
            yield last, piece.start
        last = piece.start + piece.length
    if last < field.num_slots:
        yield last, field.num_slots


def _piece(field: Field, piece: Piece) -> Iterator[str]:
    """The parts of one piece, and its letter where it first has room."""
    many = len(piece.owners) > 1
    color = palette.ROLES["shared"] if many else palette.request_color(piece.owners[0])
    filled = piece.start + piece.filled
    coming, end = filled + piece.coming, piece.start + piece.length
    for x, y, width in field.strips(coming, end):
        yield shapes.hatch(x, y, width, ROW)
    for x, y, width in field.strips(filled, coming):
        yield shapes.rect(x, y, width, ROW, stroke=color, dashed=True, fill="ground")
    name = "".join(palette.request_letter(owner) for owner in piece.owners[:2])
    for x, y, width in field.strips(piece.start, filled):
        yield shapes.rect(x, y, width, ROW, fill=color, stroke="ink", line_width=0.6)
        if name and width >= text_width(name, 12, bold=True) + 3:
            middle = x + width / 2
            yield shapes.text(middle, y + 14.5, name, anchor="middle", bold=True, on=color)
            name = ""


def _coarse(field: Field, ordered: Sequence[Piece]) -> Iterator[str]:
    """Cells of equal size, filled from the bottom by the share of their slots with a token."""
    size = max(1, field.row_slots // CELLS_IN_ROW)
    count = -(-field.num_slots // size)
    full, taken = [0] * count, [0] * count
    for piece in ordered:
        filled = piece.start + piece.filled
        _spread(full, piece.start, filled, size)
        _spread(taken, piece.start, piece.start + piece.length, size)
    grey, ink = palette.NEUTRAL, palette.ROLES["value"]
    for cell in range(count):
        slots = min(size, field.num_slots - cell * size)
        used, held = ROW * full[cell] / slots, ROW * taken[cell] / slots
        for x, y, width in field.strips(cell * size, cell * size + slots):
            yield shapes.rect(x, y, width - 1, ROW, fill=grey, opacity=0.12)
            if held > used:
                yield shapes.hatch(x, y + ROW - held, width - 1, held - used)
            if used:
                yield shapes.rect(x, y + ROW - used, width - 1, used, fill=ink)


def _spread(counts: list[int], start: int, end: int, size: int) -> None:
    """Add the slots start to end - 1 to the cells that they lie in."""
    while start < end:
        stop = min(end, (start // size + 1) * size)
        counts[start // size] += stop - start
        start = stop


def slot_key(x: float, y: float, *, coarse: bool = False) -> str:
    """Return the words of the map: token, reserved, internal, external, free."""
    grey = palette.NEUTRAL
    color = palette.ROLES["value"] if coarse else palette.request_color(0)
    drawn = {
        "token": shapes.rect(0, 0, 14, 14, fill=color),
        "reserved": shapes.rect(0, 0, 14, 14, stroke=color, dashed=True),
        "internal": shapes.hatch(0, 0, 14, 14),
        "external": shapes.hatch(0, 0, 14, 14, role="free"),
        "free": shapes.rect(0, 0, 14, 14, fill=grey, opacity=0.12, stroke=grey, line_width=1),
    }
    names = ("token", "internal", "free") if coarse else tuple(drawn)
    parts = []
    for name in names:
        parts.append(f'<g transform="translate({x:g} {y:g})">{drawn[name]}</g>')
        parts.append(shapes.text(x + 20, y + 11.5, name, quiet=True))
        x += 20 + text_width(name) + 18
    return "".join(parts)


def slot_map(
    pieces: Iterable[Piece],
    *,
    num_slots: int,
    row_slots: int,
    wanted: int = 0,
    coarse: bool = False,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return a memory of `num_slots` slots as a picture, `row_slots` to a row.

    `coarse` draws cells of equal size, whatever the number of pieces.

    >>> slot_map([Piece((0,), 0, 8, 3, 2)], num_slots=16, row_slots=16).label
    '16 slots: 3 hold a token, 2 are reserved, 3 are internal waste, 8 are free.'
    """
    sheet, held = Sheet(title, reading), list(pieces)
    width = sheet.width - 2 * MARGIN
    field = Field(MARGIN, sheet.top, width, num_slots, row_slots)
    sheet.add(draw_slots(field, held, wanted=wanted, coarse=coarse))
    sheet.add(slot_key(MARGIN, field.bottom + 12, coarse=coarse))
    return sheet.close(field.bottom + 26, label=_label(num_slots, held), scale=scale)


def _label(num_slots: int, pieces: Sequence[Piece]) -> str:
    used, coming = (sum(getattr(p, name) for p in pieces) for name in ("filled", "coming"))
    taken = sum(piece.length for piece in pieces)
    waste, free = taken - used - coming, num_slots - taken
    words = f"{num_slots:,} slots: {used:,} hold a token, {coming:,} are reserved"
    return f"{words}, {waste:,} are internal waste, {free:,} are free."

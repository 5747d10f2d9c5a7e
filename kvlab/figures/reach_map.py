"""How far one changed token reaches: rows are layers, columns positions, a cell is a state.

A state that differs is filled and carries the difference in percent; one that can't differ is
empty. The differences come in; nothing is computed here.
"""

from collections.abc import Sequence

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.layer_map import percent
from kvlab.figures.svg import Picture

_NAMES, _ROW, _NUMBERS = 122, 24, 40
_LEAST, _WIDEST = 26, 40


def reach_map(
    differences: Sequence[Sequence[float]],
    *,
    changed: int,
    direct: Sequence[int] | None = None,
    title: str = "",
    reading: str = "",
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return the map of (num_layers + 1, positions) differences, the embedding in the first row.

    `changed` is the position of the token that was changed. `direct` are the positions that the
    last query sees by itself in the last layer; they get an outline one row above.

    >>> reach_map([[0.5, 0, 0, 0], [0.4, 0.2, 0, 0], [0.4, 0.2, 0.1, 0]], changed=0).label
    'The token at position 0 was changed; it reaches position 0, 1, 2 after 0 to 2 layers.'
    """
    tokens = len(differences[0]) if differences else 0
    room = width - 2 * MARGIN - _NAMES - _NUMBERS
    if not tokens or room / tokens < _LEAST or any(len(row) != tokens for row in differences):
        most = int(room // _LEAST)
        raise InvalidArgument("differences", tokens, f"every row needs 1 to {most} positions")
    sheet, left = Sheet(title, reading, width=width), MARGIN + _NAMES
    pitch, top = min(_WIDEST, room / tokens), sheet.top
    sheet.add(shapes.text(MARGIN, top + 11, "position", quiet=True))
    for place in range(tokens):
        middle, loud = left + pitch * (place + 0.5), place == changed
        sheet.add(
            shapes.text(
                middle, top + 11, f"{place}", size=11, anchor="middle", mono=not loud, bold=loud,
                quiet=not loud,
            )
        )  # fmt: skip
    ends = []
    for layer, row in enumerate(differences):
        y = top + 20 + _ROW * layer
        name = f"after layer {layer}" if layer else "token"
        sheet.add(shapes.text(MARGIN, y + 15, name, quiet=True))
        sheet.add(*(_cell(left + pitch * i, y, pitch, share) for i, share in enumerate(row)))
        ends.append(max((i for i, share in enumerate(row) if share > 0), default=changed))
    if direct is not None and len(direct) and len(differences) > 1:
        sheet.add(_outline(left, top + 20 + _ROW * (len(differences) - 2), pitch, direct))
    reached = ", ".join(map(str, ends))
    label = f"The token at position {changed} was changed; it reaches position {reached} "
    label += f"after 0 to {len(differences) - 1} layers."
    return sheet.close(top + 20 + _ROW * len(differences), label=label, scale=scale)


def _cell(x: float, y: float, pitch: float, share: float) -> str:
    """Return one state: empty where the same, filled with a number where it differs."""
    box = (x + 1, y, pitch - 2, _ROW - 3)
    if not share > 0:
        return shapes.rect(*box, fill=palette.NEUTRAL, opacity=0.1, radius=3, kind="cell")
    words = "<1" if percent(share) == "0" else percent(share)
    opacity = 0.14 + 0.44 * min(share, 1.0)
    fill = palette.color_of("query")
    cell = shapes.rect(*box, fill=fill, opacity=opacity, radius=3, kind="cell")
    middle = x + pitch / 2
    return cell + shapes.text(middle, y + 14.5, words, size=11, anchor="middle", mono=True)


def _outline(left: float, y: float, pitch: float, direct: Sequence[int]) -> str:
    """Return the dashed box around the states that one query reads by itself."""
    first, last = min(direct), max(direct)
    wide = pitch * (last - first + 1)
    return shapes.rect(left + pitch * first, y - 2, wide, _ROW + 1, stroke="ink", dashed=True)

"""A share for every head of every layer: columns are layers, rows are heads.

The fuller the colour, the larger the share; the number is in percent. The shares come in.
"""

from collections.abc import Sequence

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.svg import Picture

_NAMES, _ROW, _WIDEST = 66, 22, 60
MOST_LAYERS = 36
"""So many columns fit with a number in each cell."""


def head_shares(
    shares: Sequence[Sequence[float]],
    *,
    title: str = "",
    reading: str = "",
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return the map; `shares` is (num_layers, num_heads), each from 0 to 1.

    >>> head_shares([[0.2, 0.4], [0.9, 0.5]]).label
    'A share for each of 2 heads in 2 layers, from 20 % to 90 %, on average 50 %.'
    """
    if not 1 <= len(shares) <= MOST_LAYERS:
        raise InvalidArgument("shares", len(shares), f"must be 1 to {MOST_LAYERS} layers")
    heads = len(shares[0])
    if heads < 1 or any(len(row) != heads for row in shares):
        raise InvalidArgument("shares", heads, "every layer must have as many heads")
    values = [share for row in shares for share in row]
    if not all(0 <= share <= 1 + 1e-6 for share in values):
        raise InvalidArgument("shares", max(values), "each must be from 0 to 1")
    sheet = Sheet(title, reading, width=width)
    left, top = MARGIN + _NAMES, sheet.top
    pitch = min(_WIDEST, (width - MARGIN - left) / len(shares))
    sheet.add(shapes.text(MARGIN, top + 11, "layer", quiet=True))
    for layer, row in enumerate(shares):
        x = left + pitch * layer
        name = shapes.text(
            x + pitch / 2, top + 11, f"{layer + 1}", size=11, anchor="middle", mono=True, quiet=True
        )
        sheet.add(name, *_column(x, top + 18, pitch, row))
    for head in range(heads):
        y = top + 18 + _ROW * head + 14
        sheet.add(shapes.text(MARGIN, y, f"head {head + 1}", size=11, quiet=True))
    low, high = (f"{100 * share:.0f} %" for share in (min(values), max(values)))
    label = f"A share for each of {heads} heads in {len(shares)} layers, from {low} to {high},"
    label += f" on average {100 * sum(values) / len(values):.0f} %."
    return sheet.close(top + 18 + _ROW * heads, label=label, scale=scale)


def _column(x: float, y: float, pitch: float, row: Sequence[float]) -> list[str]:
    """Return the cells of one layer from above, each with its number."""
    parts = []
    for head, share in enumerate(row):
        top, fill = y + _ROW * head, palette.color_of("query")
        opacity = 0.06 + 0.52 * min(share, 1.0)
        box = (x + 1, top, pitch - 2, _ROW - 2)
        parts.append(shapes.rect(*box, fill=fill, opacity=opacity, radius=3, kind="cell"))
        words = f"{100 * share:.0f}"
        middle = x + pitch / 2
        parts.append(shapes.text(middle, top + 14, words, size=11, anchor="middle", mono=True))
    return parts

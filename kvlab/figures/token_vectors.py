"""What one token leaves in the cache: a key and a value for each KV head of each layer.

A column is a layer, a cell is one vector. Sizes come in; nothing is multiplied but to place cells.
"""

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.svg import MAX_WIDTH, Picture

_NAMES, _ROW, _GAP = 150, 17, 10


def token_vectors(
    num_layers: int,
    num_kv_heads: int,
    head_dim: int,
    *,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return the vectors of one token; at most 90 layers and 16 KV heads can be told apart.

    >>> token_vectors(30, 3, 64).label
    'One token leaves 30 x 3 keys and as many values of 64 numbers each.'
    """
    if not 1 <= num_layers <= 90:
        raise InvalidArgument("num_layers", num_layers, "must be from 1 to 90")
    if not 1 <= num_kv_heads <= 16:
        raise InvalidArgument("num_kv_heads", num_kv_heads, "must be from 1 to 16")
    pitch = min((MAX_WIDTH - 2 * MARGIN - _NAMES) / num_layers, 34)
    sheet = Sheet(title, reading)
    y = sheet.top
    left = MARGIN + _NAMES
    for layer in sorted({0, num_layers - 1}):
        x = left + pitch * (layer + 0.5)
        words = "layer 1" if layer == 0 else str(num_layers)
        sheet.add(shapes.text(max(x, left + 22), y + 11, words, anchor="middle", quiet=True))
    y += 20
    for name, role in (("keys", "key"), ("values", "value")):
        for head in range(num_kv_heads):
            said = f"{name} of KV head {head + 1}"
            sheet.add(shapes.text(MARGIN, y + 12, said, quiet=True))
            for layer in range(num_layers):
                box = (left + pitch * layer, y, pitch - 2, _ROW - 3)
                fill = palette.ROLES[role]
                sheet.add(shapes.rect(*box, fill=fill, radius=2, kind="cell"))
            y += _ROW
        y += _GAP
    label = f"One token leaves {num_layers} x {num_kv_heads} keys and as many values of "
    label += f"{head_dim} numbers each."
    sheet.add(shapes.text(MARGIN, y + 12, f"each cell: {head_dim} numbers", mono=True))
    return sheet.close(y + 18, label=label, scale=scale)

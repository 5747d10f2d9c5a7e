"""A map of layers against positions: how far the keys and the values of two runs lie apart.

A row is a layer, a column is a position; the fuller the colour, the larger the difference. The
shares come in; nothing is measured here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import shorten_to
from kvlab.figures.svg import MAX_WIDTH, Picture

_WIDTH, _PITCH, _ROW = 46, 50, 17
_NAMES, _GAP = 58, 24
_NOTHING = 5e-7

Shares = Sequence[Sequence[float]]


def percent(share: float) -> str:
    """Return a share in whole percent, with 0 kept for no difference at all.

    >>> percent(0.0), percent(0.004), percent(0.263)
    ('0', '<1', '26')
    """
    if share <= _NOTHING:
        return "0"
    return "<1" if share < 0.01 else f"{100 * share:.0f}"


@dataclass(frozen=True)
class _Panel:
    """One of the two maps: its name, its colour and where it starts."""

    sheet: Sheet
    name: str
    role: str
    left: float

    def draw(self, tokens: Sequence[str], shares: Shares, changed: int) -> None:
        """Draw the tokens above, then one row of cells a layer."""
        top = self.sheet.top
        self.sheet.add(shapes.text(self.left, top + 11, self.name, bold=True))
        for index, token in enumerate(tokens):
            middle = self.left + _PITCH * index + _WIDTH / 2
            shown = shorten_to(token, _PITCH - 2, 11)
            loud = index == changed
            name = shapes.text(
                middle, top + 47, shown, size=11, anchor="middle", bold=loud, quiet=not loud
            )
            place = shapes.text(
                middle, top + 31, str(index), size=11, anchor="middle", mono=True, quiet=True
            )
            self.sheet.add(place, name)
        for layer, row in enumerate(shares):
            self._row(top + 56 + _ROW * layer, row)

    def _row(self, y: float, row: Sequence[float]) -> None:
        fill = palette.ROLES[self.role]
        for index, share in enumerate(row):
            x, words = self.left + _PITCH * index, percent(share)
            if words == "0":
                grey = palette.NEUTRAL
                box = shapes.rect(x, y, _WIDTH, _ROW - 2, fill=grey, opacity=0.08, kind="cell")
            else:
                opacity = 0.12 + 0.5 * min(share, 1.0)
                box = shapes.rect(x, y, _WIDTH, _ROW - 2, fill=fill, opacity=opacity, kind="cell")
            number = shapes.text(
                x + _WIDTH / 2, y + 11.5, words, size=11, anchor="middle", mono=True,
                quiet=words == "0",
            )  # fmt: skip
            self.sheet.add(box, number)


def layer_map(
    tokens: Sequence[str],
    keys: Shares,
    values: Shares,
    *,
    changed: int,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return the two maps; `keys` and `values` are (layers, positions) of shares, 1 for 100 %.

    `changed` is the position whose token was changed. At most 8 tokens fit.

    >>> layer_map(["a", "b"], [[0.5, 0], [0.4, 0.1]], [[0.5, 0], [0.4, 0.1]], changed=0).label
    'Differences in 2 layers at 2 positions; at the last one keys first differ in layer 2.'
    """
    width = 2 * MARGIN + _NAMES + 2 * _PITCH * len(tokens) + _GAP
    if width > MAX_WIDTH:
        raise InvalidArgument("tokens", len(tokens), "at most 8 fit into the picture")
    if not keys or any(len(row) != len(tokens) for part in (keys, values) for row in part):
        raise InvalidArgument("keys", len(keys), f"every layer must have {len(tokens)} positions")
    sheet = Sheet(title, reading, width=max(width, 480))
    left = MARGIN + _NAMES
    _Panel(sheet, "keys", "key", left).draw(tokens, keys, changed)
    right = left + _PITCH * len(tokens) + _GAP
    _Panel(sheet, "values", "value", right).draw(tokens, values, changed)
    for layer in range(len(keys)):
        y = sheet.top + 56 + _ROW * layer + 11.5
        sheet.add(shapes.text(MARGIN, y, f"layer {layer + 1}", size=11, quiet=True))
    first = next((i + 1 for i, row in enumerate(keys) if percent(row[-1]) != "0"), None)
    label = f"Differences in {len(keys)} layers at {len(tokens)} positions; at the last one keys "
    label += "never differ." if first is None else f"first differ in layer {first}."
    return sheet.close(sheet.top + 56 + _ROW * len(keys), label=label, scale=scale)

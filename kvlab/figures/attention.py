"""Attention weights as bars under their tokens, or as a triangle of all queries against all keys.

A masked position is told by a word. The weights come in; nothing is normalised here.
"""

from collections.abc import Sequence

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.cells import PITCH, WIDTH, positions, token_cells
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.strips import LABELS
from kvlab.figures.svg import Picture

BAR_HEIGHT = 56
"""Pixels of a bar that stands for a weight of 1."""


def weight_bars(
    x: float,
    y: float,
    weights: Sequence[float | None],
    *,
    pitch: float = PITCH,
    width: float = WIDTH,
    height: float = BAR_HEIGHT,
) -> str:
    """Return bars that stand on `y`, each with its number above; None is a masked position."""
    parts = [shapes.line(x - 6, y, x + pitch * len(weights) - pitch + width + 6, y, faint=True)]
    for index, weight in enumerate(weights):
        left, middle = x + index * pitch, x + index * pitch + width / 2
        if weight is None:
            parts.append(shapes.text(middle, y - 7, "masked", size=11, anchor="middle", quiet=True))
            continue
        tall = max(height * weight, 1)
        fill = palette.ROLES["query"]
        parts.append(shapes.rect(left, y - tall, width, tall, fill=fill, radius=3, kind="cell"))
        number = f"{weight:.2f}"
        parts.append(shapes.text(middle, y - tall - 6, number, anchor="middle", mono=True))
    return "".join(parts)


def attention_bars(
    tokens: Sequence[str],
    weights: Sequence[float | None],
    *,
    query: int,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return how the token at position `query` spreads its attention; None is a masked position.

    >>> attention_bars(["A", "B", "C"], [0.25, 0.75, None], query=1).label
    'Attention of B: A 0.25, B 0.75, C masked.'
    """
    if len(tokens) != len(weights):
        raise InvalidArgument("weights", len(weights), f"must have one entry for {len(tokens)}")
    sheet = Sheet(title, reading, width=2 * MARGIN + LABELS - 16 + PITCH * len(tokens))
    left, top = MARGIN + LABELS - 10, sheet.top
    sheet.add(positions(left, top + 11, len(tokens)))
    sheet.add(shapes.text(MARGIN, top + 42, "token", quiet=True))
    sheet.add(token_cells(left, top + 22, tokens, current=query))
    base = top + 74 + BAR_HEIGHT + 12
    sheet.add(shapes.text(MARGIN, base - 6, f"attention of {tokens[query]}", quiet=True))
    sheet.add(weight_bars(left, base, weights))
    told = (
        f"{token} {'masked' if weight is None else format(weight, '.2f')}"
        for token, weight in zip(tokens, weights, strict=True)
    )
    label = f"Attention of {tokens[query]}: {', '.join(told)}."
    return sheet.close(base + 4, label=label, scale=scale)


def _row(x: float, y: float, weights: Sequence[float]) -> str:
    parts = []
    for index, weight in enumerate(weights):
        left = x + 44 * index
        # at most 0.62 opaque, so that the page's ink reads on it in either theme
        opacity = 0.04 + 0.58 * weight
        fill = palette.ROLES["query"]
        parts.append(shapes.rect(left, y, 42, 26, fill=fill, opacity=opacity, kind="cell"))
        number = f"{weight:.2f}"
        parts.append(shapes.text(left + 21, y + 17, number, size=11, anchor="middle", mono=True))
    return "".join(parts)


def attention_triangle(
    tokens: Sequence[str],
    weights: Sequence[Sequence[float]],
    *,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return the causal triangle: row i holds the i + 1 weights of the query at position i.

    >>> attention_triangle(["A", "B"], [[1.0], [0.3, 0.7]]).label
    'Attention of 2 tokens: each row is a query, each column a key; later keys are masked.'
    """
    for index, row in enumerate(weights):
        if len(row) != index + 1:
            raise InvalidArgument("weights", len(row), f"row {index} must have {index + 1} entries")
    sheet = Sheet(title, reading, width=max(2 * MARGIN + 90 + 44 * len(tokens) + 10, 360))
    left, top = MARGIN + 80, sheet.top
    sheet.add(shapes.text(MARGIN, top + 11, "query \\ key", quiet=True))
    for index, token in enumerate(tokens):
        middle = left + 44 * index + 21
        sheet.add(shapes.text(middle, top + 11, token, anchor="middle", bold=True))
    for index, row in enumerate(weights):
        y = top + 20 + 28 * index
        sheet.add(shapes.text(MARGIN + 40, y + 17, tokens[index], anchor="middle", bold=True))
        sheet.add(_row(left, y, row))
    if len(tokens) > 2:
        x = left + 44 * len(tokens) - 4
        sheet.add(shapes.text(x, top + 37, "later keys: masked", anchor="end", quiet=True))
    label = f"Attention of {len(tokens)} tokens: each row is a query, each column a key; "
    label += "later keys are masked."
    return sheet.close(top + 20 + 28 * len(weights), label=label, scale=scale)

"""What one pass moves, as one bar: weights, read once for the batch, and each request's cache."""

from kvlab.figures import palette, shapes
from kvlab.figures.frame import Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture

_HEIGHT = 26
ROWS_HEIGHT = 78
"""Pixels that the heading, the bar and the words under it take."""


def traffic_rows(
    x: float, y: float, width: float, *, weights: tuple[int, str], cache: tuple[int, str]
) -> str:
    """Return the bar as markup, its top at `y`; each part is (bytes, the words for them)."""
    total = weights[0] + cache[0]
    across = width * weights[0] / total if total else 0.0
    grey, green = palette.color_of("weights"), palette.color_of("value")
    parts = [shapes.text(x, y + 12, "One decode step moves", quiet=True)]
    top = y + 22
    for left, wide, color, letter in (
        (x, across, grey, "weights"),
        (x + across, width - across, green, "cache"),
    ):
        if wide >= 1:
            box = (left, top, wide, _HEIGHT)
            parts.append(shapes.rect(*box, fill=color, stroke="ink", line_width=1, kind="cell"))
        if wide > text_width(letter) + 12:
            middle = left + wide / 2
            parts.append(shapes.text(middle, top + 17.5, letter, anchor="middle", on=color))
    below = top + _HEIGHT + 18
    parts.append(shapes.text(x, below, f"weights {weights[1]}"))
    parts.append(shapes.text(x + width, below, f"cache {cache[1]}", anchor="end"))
    return "".join(parts)


def traffic_bar(
    *,
    weights: tuple[int, str],
    cache: tuple[int, str],
    title: str = "",
    reading: str = "",
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return the bar on a sheet of its own.

    >>> traffic_bar(weights=(16, "16 GB"), cache=(4, "4 GB")).label
    'One decode step moves weights 16 GB and cache 4 GB.'
    """
    sheet = Sheet(title, reading, width=width)
    sheet.add(traffic_rows(18, sheet.top, width - 36, weights=weights, cache=cache))
    label = f"One decode step moves weights {weights[1]} and cache {cache[1]}."
    return sheet.close(sheet.top + ROWS_HEIGHT - 6, label=label, scale=scale)

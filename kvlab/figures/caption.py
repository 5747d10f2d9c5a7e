"""A picture with what happened and its numbers below it, as one drawing.

It is what a page without a kernel shows of a widget.
"""

import re
from collections.abc import Mapping

from kvlab.figures import shapes, svg
from kvlab.figures.measure import text_width, wrap
from kvlab.figures.svg import Picture, picture


def captioned(drawn: Picture, event: str = "", numbers: Mapping[str, str] | None = None) -> Picture:
    """Return an SVG picture with a line of words and a row of numbers below; others as they are.

    >>> captioned(picture("", width=200, height=40, label="A cache."), "k3 is written.").label
    'A cache. k3 is written.'
    """
    if not drawn.startswith("<svg") or not (event or numbers):
        return drawn
    shown, width, height = _sizes(drawn)
    body = drawn.split("</style>", 1)[1].removesuffix("</svg>")
    parts, bottom = [body], height + 4
    for row in wrap(event, svg.MAX_WIDTH - 4, 13):
        parts.append(shapes.text(2, bottom + 14, row, size=13))
        bottom += 20
    x = 2.0
    for name, value in (numbers or {}).items():
        needed = max(text_width(name), text_width(value, 14, mono=True))
        if x + needed > svg.MAX_WIDTH:
            x, bottom = 2.0, bottom + 44
        parts.append(shapes.text(x, bottom + 18, name, quiet=True))
        parts.append(shapes.text(x, bottom + 36, value, size=14, mono=True))
        x += needed + 28
    bottom += 44 if numbers else 0
    told = f"{drawn.label} {event}" if event and event != drawn.label else drawn.label
    wide = svg.MAX_WIDTH
    ground = shapes.rect(0, 0, wide, bottom, radius=8, fill="ground")
    return picture(
        ground + "".join(parts), width=wide, height=bottom, label=told, scale=shown / width
    )


def _sizes(drawn: Picture) -> tuple[float, float, float]:
    """The width a picture is shown at, and the width and height of its own coordinates."""
    found = re.search(r' width="([0-9.]+)"[^>]* viewBox="0 0 ([0-9.]+) ([0-9.]+)"', drawn)
    assert found is not None, "every picture has a size"
    return float(found[1]), float(found[2]), float(found[3])

"""The sheet every drawing sits on: a short heading, one line on how to read it, even margins.

It also draws the readout (names left, numbers right). It leaves out what the drawing means.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvlab.figures import palette, shapes, svg
from kvlab.figures.measure import text_width, wrap

MARGIN = 18
"""Pixels between the edge of a sheet and what is drawn on it."""


@dataclass
class Sheet:
    """A framed drawing that grows downwards; `top` is where the next piece may start.

    >>> sheet = Sheet("Cache", reading="One cell is one token.")
    >>> sheet.add(shapes.rect(18, sheet.top, 40, 32))
    >>> sheet.close(sheet.top + 32, label="one token").label
    'one token'
    """

    title: str = ""
    reading: str = ""
    width: float = svg.MAX_WIDTH
    parts: list[str] = field(default_factory=list)
    top: float = MARGIN

    def __post_init__(self) -> None:
        if self.title:
            self.add(shapes.text(MARGIN, self.top + 13, self.title, size=15, bold=True))
            self.top += 25
        for row in wrap(self.reading, self.width - 2 * MARGIN, 13):
            self.add(shapes.text(MARGIN, self.top + 11, row, size=13, quiet=True))
            self.top += 18
        if self.title or self.reading:
            self.top += 10

    def add(self, *parts: str) -> None:
        """Put markup on the sheet, above what is already there."""
        self.parts.extend(parts)

    def close(self, bottom: float, *, label: str, scale: float = 1.0) -> svg.Picture:
        """Return the finished picture; `bottom` is where the lowest piece ends, in pixels."""
        height = bottom + MARGIN
        box = (0.5, 0.5, self.width - 1, height - 1)
        ground = shapes.rect(*box, radius=8, fill="ground")
        grey = palette.NEUTRAL
        tint = shapes.rect(*box, radius=8, fill=grey, opacity=0.055, stroke=grey, line_width=1)
        drawn = ground + tint + "".join(self.parts)
        return svg.picture(drawn, width=self.width, height=height, label=label, scale=scale)


def readout_rows(x: float, y: float, rows: Mapping[str, str], *, width: float = 240) -> str:
    """Return names at the left and their numbers at the right edge, one pair each 22 pixels."""
    parts = []
    for index, (name, value) in enumerate(rows.items()):
        baseline = y + 12 + 22 * index
        parts.append(shapes.text(x, baseline, name, quiet=True))
        room = width - text_width(name) - 8
        mono = text_width(value, mono=True) <= room
        parts.append(shapes.text(x + width, baseline, value, anchor="end", mono=mono))
    return "".join(parts)

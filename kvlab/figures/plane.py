"""A plane with two axes, a thin grid and room at the right for names.

`kvlab.figures.curves` draws lines on its own; this one is for what is not a line.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import shapes
from kvlab.figures.axes import log_ticks, ticks
from kvlab.figures.curves import Axis, tick_words
from kvlab.figures.frame import MARGIN, Sheet


@dataclass(frozen=True)
class Span:
    """An axis and the values at its two ends."""

    axis: Axis
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.high > self.low:
            raise InvalidArgument(self.axis.name, self.high, f"must end above {self.low}")
        if self.axis.log and self.low <= 0:
            raise InvalidArgument(self.axis.name, self.low, "must be above 0 on a logarithmic axis")

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies, from 0 to 1.

        >>> Span(Axis("tokens", log=True), 1, 100).share(10)
        0.5
        """
        if self.axis.log:
            span = math.log(self.high / self.low)
            return math.log(max(value, 1e-300) / self.low) / span
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return the values that get a word."""
        if self.axis.log:
            return log_ticks(self.low, self.high, self.axis.base)
        return [tick for tick in ticks(self.high, 5) if tick >= self.low]


@dataclass(frozen=True)
class Plane:
    """The place of a chart on its sheet, in pixels; `names` is the room kept at the right."""

    sheet: Sheet
    x: Span
    y: Span
    height: float
    names: float = 0

    @property
    def left(self) -> float:
        """The x of the vertical axis."""
        return MARGIN + 52

    @property
    def right(self) -> float:
        """The x where the plane ends."""
        return self.sheet.width - MARGIN - self.names

    @property
    def top(self) -> float:
        """The y of the highest value."""
        return self.sheet.top + 26

    @property
    def bottom(self) -> float:
        """The y of the horizontal axis."""
        return self.top + self.height

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point."""
        across = self.left + self.x.share(x) * (self.right - self.left)
        return across, self.bottom - self.y.share(y) * self.height

    def draw(self) -> float:
        """Draw the grid and both axes; return where they end."""
        self.sheet.add(shapes.text(MARGIN, self.sheet.top + 11, self.y.axis.name, quiet=True))
        for value in self.y.ticks():
            _, level = self.at(self.x.low, value)
            words = tick_words(value, self.y.axis)
            self.sheet.add(shapes.line(self.left, level, self.right, level, faint=True))
            tick = shapes.text(self.left - 8, level + 4, words, anchor="end", mono=True, quiet=True)
            self.sheet.add(tick)
        for value in self.x.ticks():
            spot, _ = self.at(value, self.y.low)
            words = tick_words(value, self.x.axis)
            self.sheet.add(shapes.line(spot, self.bottom, spot, self.bottom + 5, faint=True))
            tick = shapes.text(
                spot, self.bottom + 19, words, anchor="middle", mono=True, quiet=True
            )
            self.sheet.add(tick)
        middle = (self.left + self.right) / 2
        name = shapes.text(middle, self.bottom + 40, self.x.axis.name, anchor="middle", quiet=True)
        self.sheet.add(name)
        return self.bottom + 42


def apart(levels: Sequence[float], *, low: float, high: float, step: float = 16) -> list[float]:
    """Return these heights pushed apart by at least `step`, from `low` (above) to `high` (below).

    >>> apart([50, 52], low=0, high=100)
    [50, 66]
    >>> apart([98, 99], low=0, high=100)
    [84, 100]
    """
    order = sorted(range(len(levels)), key=lambda place: levels[place])
    found, above = list(levels), low - step
    for left, place in enumerate(order):
        room = high - step * (len(order) - 1 - left)
        above = max(min(levels[place], room), above + step)
        found[place] = above
    return found

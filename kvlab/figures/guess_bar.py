"""One tall memory bar for a room, with a guess as a dashed ghost over it.

Sizes come in as bytes. A ghost that passes the end of the GPU stretches the scale, and a line says
where the GPU ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.figures import palette, shapes
from kvlab.figures.axes import ticks
from kvlab.figures.bar_parts import Marker, Segment, unit_size
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import shorten_to, text_width
from kvlab.figures.svg import Picture

_WIDTH, _HEIGHT, _RISE = 800, 92, 12
"""Narrower than other pictures, so that the same window shows it larger."""


def guess_bar(
    segments: Sequence[Segment],
    *,
    capacity: int,
    title: str = "",
    reading: str = "",
    guess: Marker | None = None,
    guess_start: int = 0,
    unit: str = "GB",
    scale: float = 1.0,
) -> Picture:
    """Return the bar; the `guess` starts `guess_start` bytes from the left end.

    A hatched segment of the role "free" is one that nobody has looked into yet.

    >>> guess_bar([Segment("weights", 16 * 10**9)], capacity=80 * 10**9).label
    'Memory of 80 GB: weights 16 GB.'
    """
    used = sum(segment.num_bytes for segment in segments)
    guessed = guess_start + guess.num_bytes if guess else 0
    sheet, end = Sheet(title, reading, width=_WIDTH), max(capacity, used, guessed, 1)
    bar = _Bar(sheet, capacity, end, unit, guessed)
    bar.draw(segments)
    if guess:
        bar.ghost(guess, guess_start)
    bar.axis(passed=max(used, guessed) > capacity)
    size = unit_size(unit)
    parts = ", ".join(f"{s.name} {s.num_bytes / size:,.4g} {unit}" for s in segments)
    label = f"Memory of {capacity / size:,.4g} {unit}: {parts}."
    label += " It does not fit." if used > capacity else ""
    if guess:
        label += f" {guess.name.capitalize()}, {guess.num_bytes / size:,.4g} {unit}."
    return bar.sheet.close(bar.bottom, label=label, scale=scale)


@dataclass
class _Bar:
    """The geometry: words of small parts, the ghost's words, the bar, the axis."""

    sheet: Sheet
    capacity: int
    end: int
    unit: str
    guessed: int

    def __post_init__(self) -> None:
        self.left, self.right = MARGIN + 14.0, self.sheet.width - MARGIN - 14
        self.pixels = (self.right - self.left) / self.end
        self.top = self.sheet.top + 62
        self.bottom = self.top + _HEIGHT

    def draw(self, segments: Sequence[Segment]) -> None:
        """Draw the parts; words that do not fit stand in the first line above."""
        x, edge = self.left, self.left
        for segment in segments:
            width = segment.num_bytes * self.pixels
            if width > 0:
                inside = self._part(x, max(width - 2, 1), segment)
                words = f"{segment.name} {segment.detail}".strip()
                if not inside and edge + 20 < self.right:
                    start = max(edge, min(x, self.right - text_width(words, 15)))
                    shown = shorten_to(words, self.right - start, 15)
                    self.sheet.add(shapes.text(start, self.sheet.top + 14, shown, size=15))
                    edge = start + text_width(shown, 15) + 18
            x += width

    def _part(self, x: float, width: float, segment: Segment) -> bool:
        """Draw one part; say whether its words fit inside."""
        color = palette.color_of(segment.role)
        on = None if segment.role == "free" else color
        if segment.hatched:
            self.sheet.add(shapes.hatch(x, self.top, width, _HEIGHT, role=segment.role))
            return False
        opacity = 0.15 if segment.role == "free" else None
        at = (x, self.top, width, _HEIGHT)
        self.sheet.add(shapes.rect(*at, fill=color, opacity=opacity, kind="cell"))
        lines = [line for line in (segment.name, segment.detail) if line]
        x, width = self._beside_the_ghost(x, width)
        widest = max(text_width(line, 1, bold=True) for line in lines)
        size = next((n for n in (17, 15, 13) if widest * n <= width - 8), 0)
        y = self.top + _HEIGHT / 2 + 6 - 12 * (len(lines) - 1)
        for place, line in enumerate(lines if size else ()):
            look = {"bold": not place, "mono": bool(place), "on": on, "size": size}
            middle = x + width / 2
            self.sheet.add(shapes.text(middle, y + 25 * place, line, anchor="middle", **look))
        return bool(size)

    def _beside_the_ghost(self, x: float, width: float) -> tuple[float, float]:
        """The larger piece of a part that the end of the ghost cuts in two: room for words."""
        cut = self.left + self.guessed * self.pixels
        if not self.guessed or not x < cut < x + width:
            return x, width
        return max((x, cut - x), (cut, x + width - cut), key=lambda piece: piece[1])

    def ghost(self, guess: Marker, start: int) -> None:
        """Draw the guess over the bar, its words in the second line, where the ghost ends."""
        x, width = self.left + start * self.pixels, max(guess.num_bytes * self.pixels, 3)
        box = (x, self.top - _RISE, width, _HEIGHT + 2 * _RISE)
        self.sheet.add(shapes.rect(*box, stroke="ink", dashed=True, radius=6, line_width=3))
        words = shorten_to(guess.name, self.right - self.left, 16)
        half = text_width(words, 16, bold=True) / 2
        middle = min(max(x + width / 2, self.left + half), self.right - half)
        y = self.top - _RISE - 9
        self.sheet.add(shapes.text(middle, y, words, size=16, anchor="middle", bold=True))

    def axis(self, *, passed: bool) -> None:
        """Draw the scale below, and where the GPU ends when something passes it."""
        y, size = self.bottom + _RISE + 8, unit_size(self.unit)
        for value in ticks(self.end / size, 5):
            x = self.left + value * size * self.pixels
            self.sheet.add(shapes.line(x, y, x, y + 6, faint=True))
            words = f"{value:,g} {self.unit}"
            self.sheet.add(
                shapes.text(x, y + 23, words, size=14, anchor="middle", mono=True, quiet=True)
            )
        self.bottom = y + 30
        if passed:
            x = self.left + self.capacity * self.pixels
            words = f"the GPU ends here: {self.capacity / size:,.1f} {self.unit}"
            half = text_width(words, 16, bold=True) / 2
            middle = min(max(x, self.left + half), self.right - half)
            self.sheet.add(shapes.line(x, self.top - 6, x, self.bottom + 2, width=4))
            self.sheet.add(
                shapes.text(middle, self.bottom + 20, words, size=16, anchor="middle", bold=True)
            )
        self.bottom += 26

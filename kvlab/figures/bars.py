"""Memory as one horizontal bar to scale.

Sizes come in as bytes and are shown in the unit asked for. What fits inside a segment is written
there; what does not is written above it. Nothing is summed up that the caller did not give.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.figures import shapes
from kvlab.figures.bar_parts import (
    BAR_HEIGHT,
    UNITS,
    Marker,
    Segment,
    byte_axis,
    ghost_bar,
    marker_line,
    segment_box,
    unit_size,
    words_above,
)
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture

__all__ = ["UNITS", "Marker", "Segment", "memory_bar", "unit_size"]


def memory_bar(
    segments: Sequence[Segment],
    *,
    capacity: int,
    unit: str = "GB",
    title: str = "",
    reading: str = "",
    caption: str = "",
    markers: Sequence[Marker] = (),
    guess: Marker | None = None,
    guess_start: int = 0,
    scale: float = 1.0,
) -> Picture:
    """Return one bar to scale, from 0 to `capacity` bytes or to the end of what was put in it.

    The segments lie one after another. A `guess` is drawn as a dashed ghost that starts
    `guess_start` bytes from the left end. Where the segments pass the capacity, a line says so.

    >>> memory_bar([Segment("weights", 16 * 10**9)], capacity=80 * 10**9).label
    'Memory bar of 80 GB: weights 16 GB.'
    """
    used = sum(s.num_bytes for s in segments)
    bar = _Bar(Sheet(title, reading), capacity, unit, used, guess, guess_start)
    bar.draw_segments(segments, caption)
    bar.draw_below(markers)
    size = unit_size(unit)
    parts = ", ".join(f"{s.name} {s.num_bytes / size:,.4g} {unit}" for s in segments)
    label = f"Memory bar of {capacity / size:,.4g} {unit}: {parts}."
    if bar.used > capacity:
        label += " It does not fit."
    return bar.sheet.close(bar.bottom, label=label, scale=scale)


@dataclass
class _Bar:
    """The geometry of one memory bar on its sheet."""

    sheet: Sheet
    capacity: int
    unit: str
    used: int
    guess: Marker | None
    guess_start: int = 0

    def __post_init__(self) -> None:
        self.left, self.right = MARGIN + 18, self.sheet.width - MARGIN - 28
        guessed = self.guess_start + self.guess.num_bytes if self.guess else 0
        self.end = max(self.capacity, self.used, guessed, 1)
        self.pixels_per_byte = (self.right - self.left) / self.end
        self.top = self.sheet.top + 22 + (20 if self.guess else 0)
        self.bottom = self.top + BAR_HEIGHT

    def draw_segments(self, segments: Sequence[Segment], caption: str) -> None:
        """Draw the parts in their order, the words that do not fit above them."""
        x, spots = self.left, []
        for segment in segments:
            width = segment.num_bytes * self.pixels_per_byte
            if width > 0:
                drawn = segment_box(x, self.top, width, segment)
                self.sheet.add(drawn)
                if "<text" not in drawn:
                    spots.append((x + width / 2, f"{segment.name} {segment.detail}".strip()))
                elif segment.detail and drawn.count("<text") == 1:
                    spots.append((x + width / 2, segment.detail))
            x += width
        edge = self.left + (text_width(caption) + 16 if caption else 0)
        if caption:
            self.sheet.add(shapes.text(self.left, self.sheet.top + 11, caption, quiet=True))
        self.sheet.add(words_above(spots, edge, self.right, self.sheet.top + 11))
        if self.guess:
            width = self.guess.num_bytes * self.pixels_per_byte
            start = self.left + self.guess_start * self.pixels_per_byte
            self.sheet.add(ghost_bar(start, self.sheet.top + 20, width, self.guess.name))

    def draw_below(self, markers: Sequence[Marker]) -> None:
        """Draw the capacity if it is passed, the markers one below another, and the axis."""
        shown = list(markers)
        if self.used > self.capacity:
            shown.append(Marker("the card ends here: it does not fit", self.capacity))
        for marker in shown:
            x = self.left + marker.num_bytes * self.pixels_per_byte
            edges = (self.left, self.right)
            self.sheet.add(marker_line(x, self.top, self.bottom, marker.name, *edges))
            self.bottom += 30
        axis = self.bottom + 4
        self.sheet.add(byte_axis(self.left, axis, self.pixels_per_byte, self.end, self.unit))
        self.bottom = axis + 22

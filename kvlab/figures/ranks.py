"""One bar for each GPU, all to the same scale: weights, caches, copies of caches, room, overhead.

A bar that looks like the one above it repeats no words. Nothing is summed up here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.bar_parts import Segment, byte_axis, unit_size, words_above
from kvlab.figures.frame import MARGIN, Sheet, readout_rows
from kvlab.figures.measure import shorten_to, text_width, wrap
from kvlab.figures.svg import Picture

_HEIGHT, _PITCH = 22, 27


@dataclass(frozen=True)
class RankBar:
    """One GPU: its name, what it keeps in words, its parts from left to right, and its memory."""

    name: str
    segments: Sequence[Segment]
    capacity: int
    words: str = ""

    @property
    def used(self) -> int:
        """Bytes of all parts; more than the capacity when they do not fit."""
        return sum(segment.num_bytes for segment in self.segments)

    @property
    def says(self) -> tuple[tuple[str, str], ...]:
        """The words of its parts: the same as above, and they are not repeated."""
        return tuple((segment.name, segment.detail) for segment in self.segments)


def rank_bars(
    bars: Sequence[RankBar],
    *,
    unit: str = "GB",
    title: str = "",
    reading: str = "",
    numbers: Mapping[str, str] | None = None,
    lines: Mapping[str, str] | None = None,
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return the bars below one another with one axis, then `numbers` in two columns and `lines`.

    A line marks the end of a GPU when something passes it.

    >>> rank_bars([RankBar("GPU 0", [Segment("weights", 18 * 10**9)], 80 * 10**9)]).label
    'GPU 0 of 80 GB: weights 18 GB.'
    """
    if not bars:
        raise InvalidArgument("bars", bars, "must hold at least one bar")
    drawing = _Ranks(Sheet(title, reading, width=width), bars, unit)
    drawing.draw()
    bottom = drawing.axis()
    bottom = _numbers(drawing.sheet, bottom, numbers or {})
    bottom = _lines(drawing.sheet, bottom, lines or {})
    return drawing.sheet.close(bottom, label=_label(bars, unit), scale=scale)


@dataclass
class _Ranks:
    """The geometry of the bars on their sheet."""

    sheet: Sheet
    bars: Sequence[RankBar]
    unit: str

    def __post_init__(self) -> None:
        names = max(text_width(bar.name) for bar in self.bars)
        words = max((text_width(bar.words) for bar in self.bars), default=0)
        self.left = MARGIN + names + 12
        self.right = self.sheet.width - MARGIN - (min(words, 150) + 10 if words else 20)
        self.end = max(*(max(bar.capacity, bar.used) for bar in self.bars), 1)
        self.scale = (self.right - self.left) / self.end
        self.bottom = self.sheet.top + 20

    def draw(self) -> None:
        """Draw every bar; words stand in or above the parts that differ from the bar before."""
        before: frozenset[tuple[str, str]] = frozenset()
        for bar in self.bars:
            if before and not before.issuperset(bar.says):
                self.bottom += 20
            self._bar(bar, before)
            before = frozenset(bar.says)
            self.bottom += _PITCH

    def _bar(self, bar: RankBar, before: frozenset[tuple[str, str]]) -> None:
        x, y, spots = self.left, self.bottom, []
        self.sheet.add(shapes.text(MARGIN, y + 15.5, bar.name, quiet=True))
        for segment in bar.segments:
            width = segment.num_bytes * self.scale
            if width > 0:
                loud = (segment.name, segment.detail) not in before
                words = f"{segment.name} {segment.detail}".strip()
                self.sheet.add(_part(x, y, max(width - 2, 1), segment))
                if loud and _fits(segment, width):
                    self.sheet.add(_words(x + width / 2, y, segment, words))
                elif loud:
                    spots.append((x + width / 2, words, segment.name))
            x += width
        if bar.used > bar.capacity:
            end = self.left + bar.capacity * self.scale
            self.sheet.add(shapes.line(end, y - 3, end, y + _HEIGHT + 3, width=2))
            spots += [] if before else [(end, "the GPU ends", "the GPU ends")]
        self.sheet.add(self._above(sorted(spots), y - 7))
        if bar.words:
            shown = shorten_to(bar.words, self.sheet.width - MARGIN - self.right - 8)
            self.sheet.add(shapes.text(self.right + 8, y + 15.5, shown, quiet=True))

    def _above(self, spots: Sequence[tuple[float, str, str]], y: float) -> str:
        """Words above a bar, without their sizes where these would not fit."""
        right, place = self.sheet.width - MARGIN, 0.0
        for middle, words, _ in spots:
            width = text_width(words)
            place = max(place, min(middle - width / 2, right - width)) + width + 14
        short = place - 14 > right + 0.5
        shown = [(middle, name if short else words) for middle, words, name in spots]
        return words_above(shown, self.left, right, y)

    def axis(self) -> float:
        """Draw the axis and return where it ends."""
        self.sheet.add(byte_axis(self.left, self.bottom, self.scale, self.end, self.unit))
        return self.bottom + 22


def _part(x: float, y: float, width: float, segment: Segment) -> str:
    if segment.hatched:
        return shapes.hatch(x, y, width, _HEIGHT, role=segment.role, kind="cell")
    color, opacity = palette.color_of(segment.role), 0.15 if segment.role == "free" else None
    return shapes.rect(x, y, width, _HEIGHT, fill=color, opacity=opacity, kind="cell")


def _fits(segment: Segment, width: float) -> bool:
    words = f"{segment.name} {segment.detail}".strip()
    return not segment.hatched and text_width(words) <= width - 10


def _words(middle: float, y: float, segment: Segment, words: str) -> str:
    on = None if segment.role == "free" else palette.color_of(segment.role)
    return shapes.text(middle, y + 15.5, words, anchor="middle", on=on)


def _numbers(sheet: Sheet, top: float, numbers: Mapping[str, str]) -> float:
    """Draw names and numbers in two columns; return where they end."""
    if not numbers:
        return top
    pairs, room = list(numbers.items()), (sheet.width - 2 * MARGIN - 32) / 2
    half = -(-len(pairs) // 2)
    for column, part in enumerate((pairs[:half], pairs[half:])):
        x = MARGIN + column * (room + 32)
        sheet.add(readout_rows(x, top + 10, dict(part), width=room))
    return top + 14 + 22 * half


def _lines(sheet: Sheet, top: float, lines: Mapping[str, str]) -> float:
    """Draw each name in bold with its words below it, wrapped; commands in monospace."""
    for name, words in lines.items():
        mono = words.startswith("vllm ")
        sheet.add(shapes.text(MARGIN, top + 20, name, quiet=True))
        top += 24
        for row in wrap(words, sheet.width - 2 * MARGIN, 12, mono=mono):
            sheet.add(shapes.text(MARGIN, top + 14, row, mono=mono))
            top += 18
    return top


def _label(bars: Sequence[RankBar], unit: str) -> str:
    """What the bars show; bars that are alike are told once."""
    size, told = unit_size(unit), []
    for place, bar in enumerate(bars):
        if place and bar.says == bars[place - 1].says:
            continue
        parts = ", ".join(f"{s.name} {s.num_bytes / size:,.4g} {unit}" for s in bar.segments)
        over = " It does not fit." if bar.used > bar.capacity else ""
        told.append(f"{bar.name} of {bar.capacity / size:,.4g} {unit}: {parts}.{over}")
    alike = len(bars) - len(told)
    also = f" {alike} more like the one before." if alike else ""
    return " ".join(told[:8]) + also

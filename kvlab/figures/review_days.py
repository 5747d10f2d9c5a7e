"""A question's reviews on a line of days: missed, right, and the day it comes back."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture

_PITCH, _SIZE = 46, 22


@dataclass(frozen=True)
class ReviewLine:
    """A name, (day, right) of each answer, and the day it comes back, or None when it is learnt."""

    name: str
    answers: Sequence[tuple[int, bool]]
    due: int | None


def review_days(
    lines: Sequence[ReviewLine], *, today: int, title: str = "", scale: float = 1.0
) -> Picture:
    """Return one line of days for each question; days are whole numbers from 0.

    >>> review_days([ReviewLine("scales", [(0, False), (1, True)], 4)], today=2).label
    'scales: missed on day 0, right on day 1, back on day 4.'
    """
    if not lines:
        raise InvalidArgument("lines", lines, "must hold at least one question")
    reading = "\u2717 missed, \u2713 right; the dashed box is the day on which it comes back."
    sheet = Sheet(title, reading)
    last = max([today, *(line.due or 0 for line in lines), *_days(lines)])
    left = MARGIN + max(text_width(line.name) for line in lines) + 26
    step = (sheet.width - MARGIN - left - _SIZE) / max(last, 1)
    bottom = sheet.top + 20 + _PITCH * len(lines)
    x = left + step * today
    sheet.add(shapes.text(x, sheet.top + 10, f"today, day {today}", anchor="middle", quiet=True))
    sheet.add(shapes.line(x, sheet.top + 16, x, bottom - 8, dashed=True))
    for number, line in enumerate(lines):
        sheet.add(_line(line, left, sheet.top + 44 + _PITCH * number, step, last))
    label = "; ".join(_spoken(line) for line in lines) + "."
    return sheet.close(bottom, label=label, scale=scale)


def _days(lines: Sequence[ReviewLine]) -> list[int]:
    return [day for line in lines for day, _ in line.answers]


def _line(line: ReviewLine, left: float, y: float, step: float, last: int) -> str:
    """Draw one question: its name, its answers, and the box of the day it comes back."""
    drawn = shapes.text(MARGIN, y + 4, line.name, size=13)
    drawn += shapes.line(left, y, left + step * last, y, faint=True)
    days = [day for day, _ in line.answers]
    for place, (day, right) in enumerate(line.answers):
        x = left + step * day + (_SIZE + 3) * days[:place].count(day)
        fill = palette.ROLES["weights"] if right else None
        sign = "\u2713" if right else "\u2717"
        sign = shapes.text(x, y + 5, sign, size=13, anchor="middle", on=fill)
        drawn += _box(x, y, fill=fill, stroke="ink") + sign + _day(x, y, str(day))
    if line.due is not None:
        x = left + step * line.due
        drawn += _box(x, y, stroke="ink", dashed=True) + _day(x, y, str(line.due))
    return drawn


def _box(x: float, y: float, **look: object) -> str:
    ground = shapes.rect(x - _SIZE / 2, y - _SIZE / 2, _SIZE, _SIZE, fill="ground")
    return ground + shapes.rect(x - _SIZE / 2, y - _SIZE / 2, _SIZE, _SIZE, **look)  # type: ignore[arg-type]


def _day(x: float, y: float, words: str) -> str:
    ground = shapes.rect(x - 9, y + _SIZE / 2 + 2, 18, 14, fill="ground", radius=2)
    return ground + shapes.text(x, y + _SIZE / 2 + 13, words, size=11, anchor="middle", mono=True)


def _spoken(line: ReviewLine) -> str:
    words = [f"{'right' if right else 'missed'} on day {day}" for day, right in line.answers]
    words.append("learnt" if line.due is None else f"back on day {line.due}")
    return f"{line.name}: {', '.join(words)}"

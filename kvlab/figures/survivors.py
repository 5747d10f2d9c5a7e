"""Which positions a smaller cache still holds: a strip for each KV head, the facts marked above.

A full cell is a token of a fact that is held, a pale one another token; where nothing is drawn,
the token is gone. Whether a fact was answered is told by fill against hatching. No arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.axes import ticks
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import shorten_to, text_width
from kvlab.figures.svg import Picture, element, number

_NAMES, _NUMBERS = 150, 74
_FACT_HEIGHT, _STRIP, _PITCH = 22, 18, 27


@dataclass(frozen=True)
class Fact:
    """A fact of the text: where it starts, how many tokens it takes, whether it was answered."""

    start: int
    length: int
    answered: bool


@dataclass(frozen=True)
class Strip:
    """What one KV head holds: its name, and the positions, ascending."""

    name: str
    kept: Sequence[int]


def survivors(
    strips: Sequence[Strip],
    facts: Sequence[Fact],
    *,
    length: int,
    title: str = "",
    reading: str = "",
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return the map of `length` positions; at the right stands how many are held and answered.

    >>> facts = [Fact(2, 2, True), Fact(6, 2, False)]
    >>> survivors([Strip("layer 1", [0, 2, 3, 9])], facts, length=10).label
    '1 of 2 facts answered; of 10 positions layer 1 holds 4.'
    """
    if length < 1 or any(not 0 <= at < length for strip in strips for at in strip.kept):
        raise InvalidArgument("length", length, "must be above every position that is held")
    sheet = Sheet(title, reading, width=width)
    left = MARGIN + _NAMES
    pitch = (width - MARGIN - _NUMBERS - left) / length
    right = left + pitch * length
    y = sheet.top
    answered = f"{sum(fact.answered for fact in facts)} of {len(facts)}"
    sheet.add(shapes.text(MARGIN, y + 15, "facts answered", quiet=True))
    sheet.add(*(_fact(left + pitch * f.start, y, pitch * f.length, f) for f in facts))
    sheet.add(shapes.text(right + 10, y + 15, answered, mono=True))
    y += _FACT_HEIGHT + 12
    places = {at for fact in facts for at in range(fact.start, fact.start + fact.length)}
    for strip in strips:
        name = shorten_to(strip.name, _NAMES - 8)
        sheet.add(shapes.text(MARGIN, y + 13, name, quiet=True))
        sheet.add(_strip(left, y, pitch, strip, places, length))
        sheet.add(shapes.text(right + 10, y + 13, f"{len(strip.kept):,}", mono=True))
        y += _PITCH
    sheet.add(_axis(left, y - _PITCH + _STRIP + 6, pitch, length))
    label = f"{answered} facts answered; of {length:,} positions "
    label += ", ".join(f"{strip.name} holds {len(strip.kept):,}" for strip in strips) + "."
    return sheet.close(y - _PITCH + _STRIP + 28, label=label, scale=scale)


def _fact(x: float, y: float, width: float, fact: Fact) -> str:
    """Return a fact's mark, wide enough to be seen: full if answered, hatched if not."""
    wide = max(width, 5)
    box = (x + (width - wide) / 2, y, wide, _FACT_HEIGHT)
    if not fact.answered:
        return shapes.hatch(*box)
    return shapes.rect(*box, fill=palette.color_of("value"), radius=2)


def _strip(x: float, y: float, pitch: float, strip: Strip, facts: set[int], length: int) -> str:
    """Return the ground of a strip and what is held, as one path for each shade."""
    ground = shapes.rect(x, y, pitch * length, _STRIP, fill=palette.NEUTRAL, opacity=0.13, radius=2)
    in_facts = [at for at in strip.kept if at in facts]
    others = [at for at in strip.kept if at not in facts]
    pale = _path(x, y, pitch, others, palette.PALE)
    return ground + pale + _path(x, y, pitch, in_facts, None)


def _path(x: float, y: float, pitch: float, places: Sequence[int], opacity: float | None) -> str:
    """Return neighbouring positions as one rectangle each, all in one path."""
    drawn = [
        f"M{number(x + pitch * start)} {number(y)}h{number(pitch * (stop - start))}"
        f"v{_STRIP}h{number(-pitch * (stop - start))}z"
        for start, stop in runs(places)
    ]
    if not drawn:
        return ""
    color = palette.color_of("value")
    return element("path", "", {"d": "".join(drawn), "fill": color, "fill-opacity": opacity})


def runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending positions as (first, one past the last) of each unbroken run.

    >>> runs([0, 1, 2, 7])
    [(0, 3), (7, 8)]
    """
    found: list[tuple[int, int]] = []
    for at in places:
        if found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


def _axis(x: float, y: float, pitch: float, length: int) -> str:
    """Return the positions below the strips; the last one is the end of the context."""
    end = f"{length:,}: the questions begin"
    parts = [_tick(x + pitch * length, y, end, anchor="end")]
    room = x + pitch * length - text_width(end, mono=True) - 14
    for value in ticks(length, 8):
        words = f"{value:,.0f}"
        if x + pitch * value + text_width(words, mono=True) / 2 < room:
            parts.append(_tick(x + pitch * value, y, words))
    return "".join(parts)


def _tick(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    stroke = shapes.line(x, y, x, y + 5, faint=True)
    return stroke + shapes.text(x, y + 19, words, anchor=anchor, mono=True, quiet=True)

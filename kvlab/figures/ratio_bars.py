"""A bench as bars: how many times better than a peer, and which share of a limit is reached.

The left bars start at "even" and grow to the right where we are ahead, to the left where we are
behind, on a logarithmic scale. The right bars run to a frame that is the limit. A row that missed
its aim is hatched. No arithmetic but placing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import shorten_to
from kvlab.figures.svg import Picture

_NAME, _RATIO, _RATIO_WORDS, _SHARE, _SHARE_WORDS = 18, 366, 526, 730, 848
_RATIO_WIDTH, _SHARE_WIDTH = 150, 110
_HEIGHT, _PITCH = 16, 27
ROLES = {"met": "value", "missed": "wasted", "stated": "weights"}


@dataclass(frozen=True)
class RatioBar:
    """One row: its name, ratio and share (None where there is none), the words for both.

    `state` is "met", "missed" or "stated".
    """

    name: str
    ratio: float | None
    ratio_words: str
    share: float | None
    share_words: str
    state: str = "stated"


def ratio_bars(
    rows: Sequence[RatioBar], *, title: str = "", reading: str = "", scale: float = 1.0
) -> Picture:
    """Return the rows as one picture; a ratio of 1 is even, a share of 1 is at the limit.

    >>> ratio_bars([RatioBar("decode", 2.5, "2.5x peer", 0.8, "80 %", "met")]).label
    'decode: 2.5x peer, 80 %, met.'
    """
    if not rows:
        raise InvalidArgument("rows", rows, "must hold at least one row")
    sheet = Sheet(title, reading)
    y = sheet.top
    sheet.add(
        shapes.text(_RATIO, y + 11, "times better than the peer", quiet=True),
        shapes.text(_SHARE, y + 11, "share of the limit", quiet=True),
    )
    y += 22
    place = _RatioScale([row.ratio for row in rows if row.ratio])
    bottom = y + _PITCH * len(rows)
    even = place.at(1.0)
    for row in rows:
        sheet.add(_row(row, y, place))
        y += _PITCH
    sheet.add(shapes.line(even, sheet.top + 18, even, bottom - 6, width=1.5))
    words = [
        f"{row.name}: {', '.join(filter(None, (row.ratio_words, row.share_words, row.state)))}"
        for row in rows
    ]
    return sheet.close(bottom - 8, label="; ".join(words) + ".", scale=scale)


class _RatioScale:
    """From a ratio to a pixel: logarithmic, wide enough for every row, even always on it."""

    def __init__(self, ratios: Sequence[float]) -> None:
        ends = [math.log(ratio) for ratio in ratios] + [math.log(0.8), math.log(2.0)]
        self.low, self.high = min(ends), max(ends)

    def at(self, ratio: float) -> float:
        """Return the x of a ratio."""
        share = (math.log(ratio) - self.low) / (self.high - self.low)
        return _RATIO + share * _RATIO_WIDTH


def _row(row: RatioBar, y: float, place: _RatioScale) -> str:
    role, baseline = ROLES[row.state], y + 12.5
    parts = [shapes.text(_NAME, baseline, shorten_to(row.name, _RATIO - _NAME - 10))]
    if row.ratio:
        ends = sorted((place.at(1.0), place.at(row.ratio)))
        parts.append(_bar(ends[0], y, max(1.0, ends[1] - ends[0]), row.state, role))
    words = shorten_to(row.ratio_words, _SHARE - _RATIO_WORDS - 10)
    parts.append(shapes.text(_RATIO_WORDS, baseline, words, quiet=not row.ratio))
    if row.share:
        width = _SHARE_WIDTH * min(row.share, 1.0)
        parts.append(_bar(_SHARE, y, max(1.0, width), row.state, role))
        frame = shapes.rect(_SHARE, y, _SHARE_WIDTH, _HEIGHT, stroke="ink", line_width=1)
        parts.append(frame)
        room = 960 - MARGIN - _SHARE_WORDS
        parts.append(shapes.text(_SHARE_WORDS, baseline, shorten_to(row.share_words, room)))
    return "".join(parts)


def _bar(x: float, y: float, width: float, state: str, role: str) -> str:
    if state == "missed":
        return shapes.hatch(x, y, width, _HEIGHT, role=role, kind="cell")
    return shapes.rect(x, y, width, _HEIGHT, fill=palette.color_of(role), radius=2, kind="cell")

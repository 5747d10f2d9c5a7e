"""Which query heads read which KV head: one layer, one token, and bars for what follows from it.

Every cell is one vector, so fewer cells are fewer bytes. Sizes come in as numbers and as words.
"""

from collections.abc import Sequence

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.comparison import Bar
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture, element, number

MAX_HEADS = 128
"""The most query heads whose cells can still be told apart."""

_NAMES, _HEIGHT, _FAN, _BAR, _PITCH = 178, 26, 58, 22, 32
_WIDEST, _NUMBERED = 40, 22


def head_groups(
    num_heads: int,
    num_kv_heads: int,
    *,
    bars: Sequence[Bar] = (),
    title: str = "",
    reading: str = "",
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return query heads above the KV heads they read; `bars` follow, each on a scale of its own.

    A bar's `ghost` is its dashed outline, such as what multi-head attention would take.

    >>> head_groups(8, 2).label
    '8 query heads read 2 KV heads, 4 each.'
    """
    if not 1 <= num_heads <= MAX_HEADS:
        raise InvalidArgument("num_heads", num_heads, f"must be from 1 to {MAX_HEADS}")
    if num_kv_heads < 1 or num_heads % num_kv_heads:
        rule = f"must divide the {num_heads} query heads without rest"
        raise InvalidArgument("num_kv_heads", num_kv_heads, rule)
    sheet = Sheet(title, reading, width=width)
    bottom = _heads(sheet, num_heads, num_kv_heads)
    bottom = _bars(sheet, bottom + 20, bars) if bars else bottom
    shared = num_heads // num_kv_heads
    label = f"{num_heads} query heads read {num_kv_heads} KV head"
    label += f"s, {shared} each." if num_kv_heads > 1 else f", all {shared}."
    told = "".join(f" {bar.name}: {bar.words}." for bar in bars)
    return sheet.close(bottom, label=label + told, scale=scale)


def _heads(sheet: Sheet, num_heads: int, num_kv_heads: int) -> float:
    """Draw the three rows and the lines between them; return where they end."""
    left, room = MARGIN + _NAMES, sheet.width - 2 * MARGIN - _NAMES
    pitch = min(room / num_heads, _WIDEST + 10)
    side = min(pitch - min(4, pitch * 0.3), _WIDEST)
    shared, top = num_heads // num_kv_heads, sheet.top
    centres = [left + pitch * (head + 0.5) for head in range(num_heads)]
    groups = [centres[g * shared : (g + 1) * shared] for g in range(num_kv_heads)]
    middles = [(group[0] + group[-1]) / 2 for group in groups]
    keys = top + _HEIGHT + _FAN
    sheet.add(_lines(groups, middles, top + _HEIGHT, keys))
    for row, (name, role, y, places) in enumerate(
        (
            (f"{num_heads} query heads", "query", top, centres),
            (f"{num_kv_heads} in the cache: keys", "key", keys, middles),
            ("and as many values", "value", keys + _HEIGHT + 4, middles),
        )
    ):
        sheet.add(shapes.text(MARGIN, y + 17.5, name, quiet=True))
        for head, x in enumerate(places):
            sheet.add(_cell(x, y, side, role, f"{'qkv'[row]}{head}"))
    return keys + 2 * _HEIGHT + 4


def _cell(x: float, y: float, side: float, role: str, name: str) -> str:
    color = palette.color_of(role)
    drawn = shapes.rect(x - side / 2, y, side, _HEIGHT, fill=color, radius=3, kind="cell")
    if side < max(_NUMBERED, text_width(name, 11, mono=True) + 4):
        return drawn
    return drawn + shapes.text(x, y + 17, name, size=11, anchor="middle", mono=True, on=color)


def _lines(
    groups: Sequence[Sequence[float]], middles: Sequence[float], top: float, bottom: float
) -> str:
    """One path with a stroke from every query head to the KV head it reads."""
    strokes = []
    for group, middle in zip(groups, middles, strict=True):
        for x in group:
            strokes.append(f"M{number(x)} {number(top + 3)}L{number(middle)} {number(bottom - 3)}")
    attributes: dict[str, object] = {"d": "".join(strokes), "fill": "none", "class": "ink"}
    attributes |= {"stroke-width": 1, "stroke-opacity": 0.45}
    return element("path", "", attributes)


def _bars(sheet: Sheet, top: float, bars: Sequence[Bar]) -> float:
    """Draw the bars, each full at the longer of its length and its ghost; return where they end."""
    left = MARGIN + _NAMES
    words = max(text_width(bar.words, mono=True) for bar in bars)
    room = sheet.width - MARGIN - left - words - 14
    for place, bar in enumerate(bars):
        y = top + place * _PITCH
        full = max(bar.length, bar.ghost or 0) or 1
        filled, outline = room * bar.length / full, room * (bar.ghost or bar.length) / full
        sheet.add(shapes.text(MARGIN, y + 15.5, bar.name, quiet=True))
        color = palette.color_of(bar.role)
        sheet.add(shapes.rect(left, y, max(filled, 1), _BAR, fill=color, kind="cell"))
        if bar.ghost is not None:
            outline = max(outline, 1)
            sheet.add(shapes.rect(left, y - 2.5, outline, _BAR + 5, stroke="ink", dashed=True))
        sheet.add(shapes.text(left + room + 10, y + 15.5, bar.words, mono=True))
    return top + len(bars) * _PITCH - (_PITCH - _BAR) + 3

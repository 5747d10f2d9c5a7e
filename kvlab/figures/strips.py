"""Whole pictures of a strip of tokens and of the cache under it.

No arithmetic: which cells were written, read or are still missing comes in as words.
"""

from collections.abc import Sequence

from kvlab.figures import shapes, svg
from kvlab.figures.cells import HEIGHT, PITCH, cache_row, positions, state_key, token_cells
from kvlab.figures.frame import MARGIN, Sheet

LABELS = 116
"""Pixels kept at the left for the names of rows."""


def token_strip(
    tokens: Sequence[str],
    *,
    current: int | None = None,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> svg.Picture:
    """Return the tokens of a text with their 0-based positions; at most 13 tokens.

    >>> token_strip(["A", "B"], current=1).label
    'Tokens A, B; B at position 1 is under way.'
    """
    sheet = Sheet(title, reading, width=2 * MARGIN + LABELS - 24 + PITCH * max(len(tokens), 1))
    left, top = MARGIN + LABELS - 20, sheet.top
    sheet.add(shapes.text(MARGIN, top + 11, "position", quiet=True))
    sheet.add(positions(left, top + 11, len(tokens)))
    sheet.add(shapes.text(MARGIN, top + 42, "token", quiet=True))
    sheet.add(token_cells(left, top + 22, tokens, current=current))
    label = f"Tokens {', '.join(tokens)}"
    if current is not None:
        label += f"; {tokens[current]} at position {current} is under way"
    return sheet.close(top + 22 + HEIGHT, label=label + ".", scale=scale)


def cache_rows(
    tokens: Sequence[str],
    states: Sequence[str],
    *,
    title: str = "",
    reading: str = "",
    scale: float = 1.0,
) -> svg.Picture:
    """Return the key row and the value row of a cache; `states` holds one state per token.

    >>> cache_rows(["A", "B", "C"], ["read", "written", "absent"]).label
    'Cache of 3 positions: 1 read again, 1 written now, 1 not there yet.'
    """
    sheet = Sheet(title, reading)
    left, top = MARGIN + LABELS, sheet.top
    current = states.index("written") if "written" in states else None
    for name, y in (("position", 11), ("token", 42), ("keys", 90), ("values", 130)):
        sheet.add(shapes.text(MARGIN, top + y, name, quiet=True))
    sheet.add(positions(left, top + 11, len(tokens)))
    sheet.add(token_cells(left, top + 22, tokens, current=current))
    sheet.add(cache_row(left, top + 70, states, role="key", letter="k"))
    sheet.add(cache_row(left, top + 110, states, role="value", letter="v"))
    key_left = max(left + PITCH * len(tokens) + 20, sheet.width - 210)
    if key_left + 150 <= sheet.width - MARGIN:
        sheet.add(state_key(key_left, top + 70))
    words = (("read", "read again"), ("written", "written now"), ("absent", "not there yet"))
    counted = ", ".join(f"{states.count(s)} {w}" for s, w in words)
    label = f"Cache of {len(states)} positions: {counted}."
    return sheet.close(top + 142, label=label, scale=scale)

"""A whole answer as two staircases: which tokens pass through the model at each step.

A row is one step, a column one position. The counts under a staircase are those of the cells
drawn in it. It leaves out what happens inside a step; `kvlab.figures.recompute` shows that.
"""

from collections.abc import Sequence

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.cells import cell
from kvlab.figures.frame import MARGIN, Sheet, readout_rows
from kvlab.figures.svg import Picture

MAX_TOKENS = 10
"""The most positions that fit beside one another, twice."""

_WIDTH, _PITCH, _ROW, _LABEL = 30, 34, 26, 92

Rows = tuple[tuple[str, ...], ...]


def staircase(prompt_tokens: int, new_tokens: int, *, cached: bool) -> Rows:
    """Return one row of states for each step: now, again, read or absent, one per position.

    >>> staircase(2, 2, cached=False)
    (('now', 'now', 'absent'), ('again', 'again', 'now'))
    """
    total = prompt_tokens + new_tokens - 1
    rows = []
    for step in range(new_tokens):
        new = prompt_tokens if step == 0 else 1
        held = prompt_tokens + step - new
        old = ("read" if cached else "again",) * held
        rows.append(old + ("now",) * new + ("absent",) * (total - held - new))
    return tuple(rows)


def count_cells(rows: Rows) -> dict[str, int]:
    """Return how many cells pass through the model, how many of them again, how many are read."""
    cells = [state for row in rows for state in row]
    again = cells.count("again")
    return {"passed": cells.count("now") + again, "again": again, "read": cells.count("read")}


def _cell(x: float, y: float, state: str) -> str:
    if state == "again":
        return shapes.hatch(x, y, _WIDTH, _ROW - 4, kind="cell")
    if state == "absent":
        fill, size = palette.NEUTRAL, (_WIDTH, _ROW - 4)
        return shapes.rect(x, y, *size, fill=fill, opacity=0.07, kind="cell")
    shown = "written" if state == "now" else state
    return cell(x, y, role="value", state=shown, width=_WIDTH, height=_ROW - 4)


def _stairs(x: float, y: float, tokens: Sequence[str], emitted: Sequence[str], rows: Rows) -> str:
    """Tokens above, one row a step below, and at its left the token that the step emits."""
    parts = []
    for index, token in enumerate(tokens):
        middle = x + _LABEL + _PITCH * index + _WIDTH / 2
        parts.append(shapes.text(middle, y + 12, token, anchor="middle", bold=True, size=13))
    for line, (name, states) in enumerate(zip(emitted, rows, strict=True)):
        top = y + 22 + _ROW * line
        parts.append(shapes.text(x, top + 15, f"step {line + 1}: {name}", quiet=True))
        for index, state in enumerate(states):
            parts.append(_cell(x + _LABEL + _PITCH * index, top, state))
    return "".join(parts)


def token_staircases(
    tokens: Sequence[str],
    prompt_tokens: int,
    *,
    title: str = "Which tokens pass through the model",
    reading: str = "A row is a step with the token it emits, a column a token of the text. A full "
    "cell passes for the first time, a hatched one again, a pale one is read from the cache.",
    scale: float = 1.0,
) -> Picture:
    """Return both staircases of a text whose first `prompt_tokens` are the prompt.

    The last token is emitted and never consumed, so it has no column.

    >>> token_staircases(list("ABCDEF"), 3).label
    'A prompt of 3, 3 emitted: 12 token-forwards without a cache, 5 with one, 7 reads instead.'
    """
    consumed, new = tokens[:-1], len(tokens) - prompt_tokens
    if not 1 <= prompt_tokens < len(tokens) or len(consumed) > MAX_TOKENS:
        rule = f"must leave an emitted token, and {MAX_TOKENS} or fewer are drawn"
        raise InvalidArgument("prompt_tokens", prompt_tokens, rule)
    sheet, counts = Sheet(title, reading), []
    half = (sheet.width - 2 * MARGIN + 24) / 2
    bottom = sheet.top + 34 + 22 + _ROW * new
    for place, name in enumerate(("without a cache", "with a cache")):
        x, rows = MARGIN + half * place, staircase(prompt_tokens, new, cached=bool(place))
        counts.append(count_cells(rows))
        sheet.add(shapes.text(x, sheet.top + 12, name, size=14, bold=True))
        sheet.add(_stairs(x, sheet.top + 28, consumed, tokens[prompt_tokens:], rows))
        sheet.add(shapes.line(x, bottom, x + half - 40, bottom, faint=True))
        sheet.add(readout_rows(x, bottom + 8, _words(counts[-1]), width=half - 40))
    first, second = counts
    label = f"A prompt of {prompt_tokens}, {new} emitted: {first['passed']} token-forwards without "
    label += f"a cache, {second['passed']} with one, {second['read']} reads instead."
    return sheet.close(bottom + 8 + 66, label=label, scale=scale)


def _words(counts: dict[str, int]) -> dict[str, str]:
    return {
        "token-forwards": f"{counts['passed']}",
        "of them again": f"{counts['again']}",
        "read from the cache": f"{counts['read']}",
    }

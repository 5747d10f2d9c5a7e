"""Tokens, vectors and cache rows as cells.

A cell written now is full and outlined, one read again is pale, one that is not there yet is a
dashed outline. A masked position is told by a word. No arithmetic: numbers come in, cells go out.
"""

from collections.abc import Sequence

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.measure import shorten_to

WIDTH, HEIGHT, PITCH = 40, 32, 60
"""The size of a token's cell and the distance from one to the next, in pixels."""

STATES = ("written", "full", "read", "absent", "plain")


def cell(
    x: float,
    y: float,
    content: str = "",
    *,
    role: str = "free",
    state: str = "plain",
    width: float = WIDTH,
    height: float = HEIGHT,
    size: float = 12,
    bold: bool = False,
) -> str:
    """Return one cell; `state` is written, read (pale), absent (dashed) or plain (grey).

    `full` is written without its outline, for cells that share one.
    """
    if state not in STATES:
        raise InvalidArgument("state", state, f"must be one of {', '.join(STATES)}")
    color = palette.color_of(role)
    if state == "absent":
        box = shapes.rect(x, y, width, height, stroke=palette.NEUTRAL, dashed=True, kind="cell")
    elif state in ("written", "full"):
        stroke = "ink" if state == "written" else None
        box = shapes.rect(x, y, width, height, fill=color, stroke=stroke, kind="cell")
    else:
        opacity = palette.PALE if state == "read" else 0.15
        box = shapes.rect(x, y, width, height, fill=color, opacity=opacity, kind="cell")
    if not content:
        return box
    shown = shorten_to(content, width - 2, size, mono=True)
    baseline = y + height / 2 + size * 0.36
    return box + shapes.text(
        x + width / 2,
        baseline,
        shown,
        size=size,
        anchor="middle",
        mono=not bold,
        bold=bold,
        quiet=state == "absent",
        on=color if state in ("written", "full") else None,
    )


def token_cells(
    x: float, y: float, tokens: Sequence[str], *, current: int | None, pitch: float = PITCH
) -> str:
    """Return a strip of tokens; the one under way is in the query's colour, later ones quiet."""
    parts = []
    for index, token in enumerate(tokens):
        role, state = ("query", "written") if index == current else ("free", "plain")
        shown = cell(x + index * pitch, y, token, role=role, state=state, size=14, bold=True)
        if current is not None and index > current:
            shown = shown.replace('class="b"', 'class="b q"')
        parts.append(shown)
    return "".join(parts)


def positions(x: float, y: float, count: int, *, pitch: float = PITCH) -> str:
    """Return the numbers 0, 1, 2 ... centred above the cells of a strip."""
    middle = x + WIDTH / 2
    return "".join(
        shapes.text(middle + i * pitch, y, str(i), anchor="middle", mono=True, quiet=True)
        for i in range(count)
    )


def cache_row(
    x: float, y: float, states: Sequence[str], *, role: str, letter: str, pitch: float = PITCH
) -> str:
    """Return one row of a cache, a cell per position, named k0, k1 ... where there is one."""
    return "".join(
        cell(
            x + i * pitch,
            y,
            "" if state == "absent" else f"{letter}{i}",
            role="free" if state == "absent" else role,
            state=state,
        )
        for i, state in enumerate(states)
    )


def state_key(x: float, y: float) -> str:
    """Return the three-line key to the states of a cache cell."""
    parts = []
    for index, (name, state) in enumerate(
        (("written now", "written"), ("read again", "read"), ("not there yet", "absent"))
    ):
        top = y + 26 * index
        parts.append(shapes.text(x, top + 12, name, quiet=True))
        for place, role in enumerate(("key", "value")):
            parts.append(
                cell(
                    x + 110 + 23 * place,
                    top,
                    role="free" if state == "absent" else role,
                    state=state,
                    width=17,
                    height=17,
                )
            )
    return "".join(parts)

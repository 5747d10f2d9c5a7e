"""One step of decoding in two columns: everything computed again, or the cache read.

Each cell is one vector (or one score). The counts under a column are the counts of the cells
drawn in it, so the picture and the numbers can't disagree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvlab.figures import palette, shapes
from kvlab.figures.cells import cell
from kvlab.figures.frame import MARGIN, Sheet, readout_rows
from kvlab.figures.svg import Picture

_PITCH, _WIDTH, _LABEL = 42, 36, 76
_ROWS = (("queries", "query", "q"), ("keys", "key", "k"), ("values", "value", "v"))

States = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """One way of doing the step, as states: now, again, read or absent, one per position.

    `rows` holds the states of queries, keys and values; `scores` one row of states per query;
    `keeps` says whether keys and values made now are written to a cache.
    """

    name: str
    rows: Mapping[str, States]
    scores: tuple[States, ...]
    keeps: bool

    def counts(self) -> dict[str, int]:
        """Return how many cells are computed, computed again, read and written."""
        vectors = [state for states in self.rows.values() for state in states]
        scores = [state for states in self.scores for state in states]
        kept = [s for name in ("key", "value") for s in self.rows[name]]
        return {
            "vectors": vectors.count("now") + vectors.count("again"),
            "vectors_again": vectors.count("again"),
            "scores": scores.count("now") + scores.count("again"),
            "scores_again": scores.count("again"),
            "read": vectors.count("read"),
            "written": kept.count("now") if self.keeps else 0,
        }


def recompute_column(num_tokens: int, step: int) -> Column:
    """Return the step that consumes position `step` without a cache, of `num_tokens` positions.

    >>> recompute_column(8, 3).counts()["vectors"]
    12
    """
    later = ("absent",) * (num_tokens - step - 1)
    vectors = ("again",) * step + ("now",) + later
    scores = tuple(
        (("now" if row == step else "again",) * (row + 1)) + ("absent",) * (num_tokens - row - 1)
        for row in range(step + 1)
    )
    rows = {role: vectors for _, role, _ in _ROWS}
    return Column("recompute", rows, scores, keeps=False)


def cached_column(num_tokens: int, step: int) -> Column:
    """Return the step that consumes position `step` with a cache, of `num_tokens` positions.

    >>> cached_column(8, 3).counts()["vectors"], cached_column(8, 3).counts()["read"]
    (3, 6)
    """
    later = ("absent",) * (num_tokens - step - 1)
    kept = ("read",) * step + ("now",) + later
    rows = {"query": ("absent",) * step + ("now",) + later, "key": kept, "value": kept}
    empty = ("absent",) * num_tokens
    scores = (*((empty,) * step), ("now",) * (step + 1) + later)
    return Column("remember", rows, scores, keeps=True)


def _cell(x: float, y: float, name: str, role: str, state: str, height: float) -> str:
    if state == "again":
        return shapes.hatch(x, y, _WIDTH, height, kind="cell")
    if state == "absent":
        return shapes.rect(x, y, _WIDTH, height, fill=palette.NEUTRAL, opacity=0.07, kind="cell")
    shown = "written" if state == "now" else state
    size = {"width": _WIDTH, "height": height, "size": 11.0}
    return cell(x, y, name, role=role, state=shown, **size)


def _vectors(x: float, y: float, column: Column) -> str:
    parts = []
    for line, (name, role, letter) in enumerate(_ROWS):
        top = y + 30 * line
        parts.append(shapes.text(x, top + 16, name, quiet=True))
        for index, state in enumerate(column.rows[role]):
            left = x + _LABEL + _PITCH * index
            parts.append(_cell(left, top, f"{letter}{index}", role, state, 24))
    return "".join(parts)


def _scores(x: float, y: float, column: Column) -> str:
    parts = [shapes.text(x, y + 12, "scores", quiet=True)]
    for row, states in enumerate(column.scores):
        top = y + 18 * row
        if "now" in states or "again" in states:
            name = f"q{row}"
            spot = x + _LABEL - 8
            parts.append(shapes.text(spot, top + 12, name, size=11, anchor="end", mono=True))
        for index, state in enumerate(states):
            if state != "absent":
                left = x + _LABEL + _PITCH * index
                parts.append(_cell(left, top, "", "query", state, 14))
    return "".join(parts)


def _tokens(x: float, y: float, tokens: Sequence[str], step: int) -> str:
    parts = [shapes.text(x, y + 16, "token", quiet=True)]
    for index, token in enumerate(tokens):
        left = x + _LABEL + _PITCH * index
        role, state = ("query", "written") if index == step else ("free", "plain")
        size = {"width": _WIDTH, "height": 24.0, "size": 13.0}
        parts.append(cell(left, y, token, role=role, state=state, bold=True, **size))
    return "".join(parts)


def count_rows(column: Column) -> dict[str, str]:
    """Return the counts of a column in words, for the place under it or a readout."""
    n = column.counts()

    def again(total: int, twice: int) -> str:
        return f"{total} ({twice} again)" if twice else f"{total}"

    return {
        "vectors computed": again(n["vectors"], n["vectors_again"]),
        "scores computed": again(n["scores"], n["scores_again"]),
        "vectors read from the cache": f"{n['read']}",
        "vectors written to the cache": f"{n['written']}",
    }


def step_columns(
    tokens: Sequence[str],
    step: int,
    *,
    title: str = "Recompute or remember",
    reading: str = "One cell is one vector or one score: outlined is computed now, hatched is "
    "computed again, pale is read from the cache.",
    scale: float = 1.0,
) -> Picture:
    """Return both ways of the step that consumes `tokens[step]`, with their cells counted.

    >>> step_columns(list("ABCDEFGH"), 3).label
    'Step of D: recompute computes 12 vectors, 9 of them again; with the cache 3, reading 6.'
    """
    sheet = Sheet(title, reading)
    columns = recompute_column(len(tokens), step), cached_column(len(tokens), step)
    half = (sheet.width - 2 * MARGIN + 24) / 2
    names = ("recompute everything", "remember keys and values")
    height = 18 * len(tokens)
    for place, (column, name) in enumerate(zip(columns, names, strict=True)):
        x, y = MARGIN + half * place, sheet.top
        sheet.add(shapes.text(x, y + 12, name, size=14, bold=True))
        sheet.add(_tokens(x, y + 26, tokens, step), _vectors(x, y + 62, column))
        sheet.add(_scores(x, y + 160, column))
        sheet.add(shapes.line(x, y + 168 + height, x + half - 40, y + 168 + height, faint=True))
        sheet.add(readout_rows(x, y + 176 + height, count_rows(column), width=half - 40))
    first, second = (column.counts() for column in columns)
    label = f"Step of {tokens[step]}: recompute computes {first['vectors']} vectors, "
    label += f"{first['vectors_again']} of them again; with the cache {second['vectors']}, "
    label += f"reading {second['read']}."
    return sheet.close(sheet.top + 176 + height + 88, label=label, scale=scale)

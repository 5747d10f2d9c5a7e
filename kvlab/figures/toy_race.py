"""Two columns in which the toy writes the same letters, a token a beat: again and again, or once.

A row is a step, a cell one token passing through the model. The counts are those of the cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvlab.figures import palette, shapes
from kvlab.figures.cells import cell
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.measure import text_width
from kvlab.figures.svg import Picture

_PITCH, _WIDTH, _ROW, _LABEL = 46, 40, 32, 66
_READING = (
    "A row is a step, a cell one token through the model: outlined for the first time, hatched "
    "again, pale read from the cache."
)


@dataclass(frozen=True)
class Column:
    """One way: its name, the letters written, a row of states a step, and its counts by name.

    `state` is a word such as "writing"; `role` colours the edge.
    """

    name: str
    written: str
    rows: Sequence[Sequence[str]]
    counts: Mapping[str, str]
    state: str
    role: str


def toy_race(
    columns: Sequence[Column],
    *,
    prompt: str,
    num_new: int,
    title: str = "",
    verdict: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return both columns side by side; `verdict` is the line below them when both have finished.

    >>> lane = Column("remember", "C", [["now", "now", "absent"]], {"passed": "2"}, "writing",
    ...               "value")
    >>> toy_race([lane], prompt="AB", num_new=2).label
    'remember: writing, C written, passed 2.'
    """
    sheet = Sheet(title, _READING)
    half = (sheet.width - 2 * MARGIN + 20) / 2
    top, bottom = sheet.top, sheet.top + 122 + _ROW * num_new
    for place, column in enumerate(columns):
        x = MARGIN + half * place
        sheet.add(_head(x, top, column, half - 20))
        sheet.add(_letters(x, top + 44, prompt, column.written, num_new))
        sheet.add(_steps(x, top + 96, column, prompt, num_new))
        sheet.add(_counts(x, bottom, column.counts, half - 20))
    if verdict:
        sheet.add(shapes.text(MARGIN, bottom + 70, verdict, size=16, bold=True))
    said = [_said(column) for column in columns]
    return sheet.close(bottom + 74, label=" ".join([*said, verdict]).strip(), scale=scale)


def _said(column: Column) -> str:
    counts = ", ".join(f"{name} {value}" for name, value in column.counts.items())
    return f"{column.name}: {column.state}, {column.written or 'nothing'} written, {counts}."


def _head(x: float, y: float, column: Column, width: float) -> str:
    """The edge in the column's colour, its name, and its state in a chip at the right."""
    color = palette.color_of(column.role)
    edge = shapes.rect(x, y, width, 4, fill=color, radius=2)
    words = text_width(column.state, 14, bold=True) + 18
    left = x + width - words
    loud = column.state == "finished"
    chip = shapes.rect(left, y + 12, words, 24, fill=color if loud else None, stroke=color)
    said = shapes.text(
        left + words / 2, y + 29, column.state, size=14, bold=True, anchor="middle",
        on=color if loud else None,
    )  # fmt: skip
    return edge + shapes.text(x, y + 30, column.name, size=17, bold=True) + chip + said


def _letters(x: float, y: float, prompt: str, written: str, num_new: int) -> str:
    """The text so far: the prompt in grey, what was written in colour, the rest still dashed."""
    parts = [shapes.text(x, y + 24, "text", size=14, quiet=True)]
    for place in range(len(prompt) + num_new):
        here = (prompt + written)[place : place + 1]
        state = "absent" if not here else "plain" if place < len(prompt) else "written"
        role = "query" if state == "written" else "free"
        left = x + _LABEL + _PITCH * place
        size = {"width": _WIDTH, "height": 36.0, "size": 18.0}
        parts.append(cell(left, y, here, role=role, state=state, bold=True, **size))
    return "".join(parts)


def _steps(x: float, y: float, column: Column, prompt: str, num_new: int) -> str:
    parts = []
    for step in range(num_new):
        top = y + _ROW * step
        name = shapes.text(x, top + 18, f"step {step + 1}", size=14, quiet=True)
        parts.append(name)
        blank = ("absent",) * (len(prompt) + num_new - 1)
        states = column.rows[step] if step < len(column.rows) else blank
        for place, state in enumerate(states):
            parts.append(_cell(x + _LABEL + _PITCH * place, top, state))
    return "".join(parts)


def _cell(x: float, y: float, state: str) -> str:
    size = (_WIDTH, _ROW - 7)
    if state == "again":
        return shapes.hatch(x, y, *size, kind="cell")
    if state == "absent":
        return shapes.rect(x, y, *size, fill=palette.NEUTRAL, opacity=0.08, kind="cell")
    shown = "written" if state == "now" else state
    return cell(x, y, role="value", state=shown, width=_WIDTH, height=_ROW - 7)


def _counts(x: float, y: float, counts: Mapping[str, str], width: float) -> str:
    """Big numbers in a row, each above its name."""
    parts = [shapes.line(x, y - 18, x + width, y - 18, faint=True)]
    step = width / max(len(counts), 1)
    for place, (name, value) in enumerate(counts.items()):
        left = x + step * place
        parts.append(shapes.text(left, y + 16, value, size=26, bold=True, mono=True))
        parts.append(shapes.text(left, y + 38, name, size=14, quiet=True))
    return "".join(parts)

"""Follow one token through the toy: its query against every key, the weights, the sum of values.

A column is a position of the text; a cell is one number of a vector. Everything comes from one
`kvlab.model.toy.ToyStep`; nothing is computed here.
"""

from typing import TYPE_CHECKING

from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.cells import cell, state_key
from kvlab.figures.frame import MARGIN, Sheet, readout_rows
from kvlab.figures.svg import Picture
from kvlab.figures.toy_head import CELL, KEYS_X, PITCH, QUERY_X, HeadDrawing, compact

if TYPE_CHECKING:
    from kvlab.model.toy import ToyStep


def _panel(sheet: Sheet, step: "ToyStep", x: float, y: float, letters: str) -> None:
    """Draw, at the right, what the token is, what comes out, and the key to the cells."""
    heading = f"consume {step.letter}, predict {step.prediction}"
    sheet.add(shapes.text(x, y + 13, heading, size=14, bold=True))
    sheet.add(shapes.text(x, y + 42, f"embedding of {step.letter} at {step.position}", quiet=True))
    size = {"width": 34.0, "height": 20.0, "size": 11.0}
    for i, value in enumerate(step.embedding):
        sheet.add(cell(x + 37 * i, y + 50, compact(float(value)), **size))
    sheet.add(shapes.text(x, y + 102, "chance of the next letter", quiet=True))
    for i, (letter, chance) in enumerate(zip(letters, step.probabilities, strict=True)):
        left, tall = x + 28 * i, max(44 * float(chance), 1)
        best = letter == step.prediction
        fill = palette.ROLES["weights"]
        sheet.add(shapes.rect(left, y + 168 - tall, 22, tall, fill=fill, radius=3, kind="cell"))
        sheet.add(
            shapes.text(left + 11, y + 184, letter, anchor="middle", bold=best, quiet=not best)
        )
        if best:
            number = f"{float(chance):.2f}"
            sheet.add(shapes.text(left + 11, y + 163 - tall, number, anchor="middle", mono=True))
    sheet.add(state_key(x, y + 212), readout_rows(x, y + 304, facts(step), width=218))


def facts(step: "ToyStep") -> dict[str, str]:
    """Return what the step did to the cache, counted from its rows, in words."""
    written, held = len(step.rows_written), len(step.weights[0])

    def tokens(count: int) -> str:
        return f"{count} token{'' if count == 1 else 's'}"

    return {
        "projected this step": tokens(written),
        "without a cache": tokens(held),
        "cache now holds": f"{held} position{'' if held == 1 else 's'}",
        "query kept": "no",
    }


def toy_step(
    step: "ToyStep",
    letters: str = "ABCDEFGH",
    *,
    text: str | None = None,
    title: str = "Follow one token",
    reading: str = "A column is a position, a cell one number. Outlined is written this step, "
    "pale is read from the cache, dashed is not there yet.",
    scale: float = 1.0,
) -> Picture:
    """Return the picture of one step of the toy; `text` is what has been or will be consumed.

    `letters` names the columns of the prediction, `text` (default: the same) those of the cache.

    >>> from kvlab.model.toy import Toy, ToyCache
    >>> toy_step(Toy().prefill(ToyCache(), "ABCD")[-1]).label
    'Toy, 1 head: D at position 3 is consumed and predicts E; the cache holds 4 positions.'
    """
    text = letters if text is None else text
    held = len(step.weights[0])
    if held > len(text):
        raise InvalidArgument("text", text, f"must have the {held} positions that the cache holds")
    sheet = Sheet(title, reading)
    sheet.add(shapes.text(MARGIN, sheet.top + 11, "position", quiet=True))
    for slot, letter in enumerate(text):
        x = KEYS_X + PITCH * slot
        sheet.add(shapes.text(x + CELL / 2, sheet.top + 11, str(slot), anchor="middle", mono=True,
                              quiet=True))  # fmt: skip
        role, state = ("query", "written") if slot == step.position else ("free", "plain")
        size = {"width": CELL, "height": 26.0, "size": 13.0}
        sheet.add(cell(x, sheet.top + 20, letter, role=role, state=state, bold=True, **size))
    sheet.add(shapes.text(MARGIN, sheet.top + 37, "token", quiet=True))
    query = f"query of {step.letter}"
    sheet.add(shapes.text(QUERY_X + CELL / 2, sheet.top + 37, query, anchor="middle", quiet=True))
    bottom, count = sheet.top + 46, len(step.q)
    for head in range(count):
        if count > 1:
            sheet.add(shapes.text(MARGIN, bottom + 22, f"head {head}", bold=True))
            bottom += 18
        bottom = HeadDrawing(sheet, step, head, len(text), bottom + 12).draw()
    _panel(sheet, step, sheet.width - MARGIN - 226, sheet.top, letters)
    label = f"Toy, {count} head{'s' if count > 1 else ''}: {step.letter} at position "
    label += f"{step.position} is consumed and predicts {step.prediction}; the cache holds "
    label += f"{held} position{'' if held == 1 else 's'}."
    return sheet.close(max(bottom + 2, sheet.top + 394), label=label, scale=scale)

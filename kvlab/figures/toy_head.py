"""One attention head of the toy: q left of the keys, scores, weights, values and their sum.

A column is a position of the cache; a cell is one number. Nothing is computed here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvlab.figures import palette, shapes
from kvlab.figures.attention import weight_bars
from kvlab.figures.cells import cell
from kvlab.figures.frame import MARGIN, Sheet

if TYPE_CHECKING:
    from kvlab.model.toy import ToyStep
    from kvlab.model.toy_weights import Floats

CELL, ROW = 44, 18
QUERY_X, KEYS_X, PITCH = 96, 168, 52
_BAR = 30


def compact(value: float) -> str:
    """Return a number in few characters: two decimals at most, a true minus sign.

    >>> compact(-0.5), compact(3.0), compact(0.176)
    ('\u22120.5', '3', '0.18')
    """
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "0") else shown.replace("-", "\u2212")


def _stack(x: float, y: float, values: "Floats", *, role: str, state: str) -> str:
    """One vector as a column of cells; written now, it has one outline around it."""
    size = {"width": CELL, "height": ROW - 2.0, "size": 10.5}
    shown = "full" if state == "written" else state
    cells = "".join(
        cell(x, y + ROW * i, compact(float(v)), role=role, state=shown, **size)
        for i, v in enumerate(values)
    )
    if state != "written":
        return cells
    return cells + shapes.rect(x - 2, y - 2, CELL + 4, ROW * len(values) + 2, stroke="ink")


@dataclass
class HeadDrawing:
    """One head's part of the drawing: q left of the keys, the sum right of the values."""

    sheet: Sheet
    step: "ToyStep"
    head: int
    num_slots: int
    top: float

    def __post_init__(self) -> None:
        self.rows = self.step.q.shape[-1]
        self.tall = ROW * self.rows - 2
        self.sum_x = KEYS_X + PITCH * self.num_slots + 14

    def state(self, slot: int) -> str:
        """Return written, read or absent for a slot of the cache."""
        if slot in self.step.rows_written:
            return "written"
        return "read" if slot in self.step.rows_read else "absent"

    def vectors(self, y: float, role: str, held: "Floats") -> None:
        """Draw what the cache holds of keys or values, a column a position."""
        for slot in range(self.num_slots):
            x, state = KEYS_X + PITCH * slot, self.state(slot)
            if state == "absent":
                gap = shapes.rect(
                    x, y, CELL, self.tall, stroke=palette.NEUTRAL, dashed=True, kind="cell"
                )
                self.sheet.add(gap)
            else:
                self.sheet.add(_stack(x, y, held[self.head, slot], role=role, state=state))

    def label(self, y: float, name: str, hint: str = "") -> None:
        """Write the name of a row at the left, and what it is below."""
        self.sheet.add(shapes.text(MARGIN, y, name, quiet=True))
        if hint:
            self.sheet.add(shapes.text(MARGIN, y + 15, hint, size=11, quiet=True))

    def draw(self) -> float:
        """Draw the head and return where it ends."""
        y, step = self.top, self.step
        self.label(y + 13, "keys")
        self.sheet.add(_stack(QUERY_X, y, step.q[self.head], role="query", state="written"))
        self.vectors(y, "key", step.keys)
        y += self.tall + 8
        self.label(y + 13, "scores", "q\u00b7k / \u221ad")
        self.scores(y)
        y += 30 + _BAR + 8
        self.label(y - 14, "weights", "softmax")
        seen = zip(step.weights[self.head], step.visible, strict=True)
        weights = [float(w) if shown else None for w, shown in seen]
        self.sheet.add(weight_bars(KEYS_X, y, weights, pitch=PITCH, width=CELL, height=_BAR))
        y += 12
        self.label(y + 13, "values")
        self.vectors(y, "value", step.values)
        self.sum(y)
        return y + self.tall

    def scores(self, y: float) -> None:
        """Draw the score of each key; a hidden one is struck by the word below it."""
        for slot, score in enumerate(self.step.scores[self.head]):
            middle = KEYS_X + PITCH * slot + CELL / 2
            quiet = not self.step.visible[slot]
            shown = shapes.text(middle, y + 13, compact(float(score)), anchor="middle", mono=True,
                                quiet=quiet)  # fmt: skip
            self.sheet.add(shown)

    def sum(self, y: float) -> None:
        """Draw the weighted sum of the values at the right of them."""
        x, middle = self.sum_x, y + self.tall / 2
        self.sheet.add(shapes.arrow(x - 16, middle, x - 2, middle, head=4))
        summed = self.step.head_outputs[self.head]
        self.sheet.add(_stack(x + 4, y, summed, role="free", state="plain"))
        self.sheet.add(shapes.rect(x + 2, y - 2, CELL + 4, self.tall + 4, stroke="ink"))
        self.sheet.add(shapes.text(x + 4 + CELL / 2, y - 8, "sum", anchor="middle", quiet=True))

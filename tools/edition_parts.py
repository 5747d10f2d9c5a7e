"""What both editions of a chapter share: which cell belongs to which exercise, and its sentences.

An exercise is three kinds of cells: `exercise` (its code holds `...`), `check` (names the id) and,
folded, `hint` and `solution`. The check that follows an exercise's code says which one it is.
"""

import re
import sys
from collections.abc import Iterator

from chapter_pairs import ROOT, tags_of
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

sys.path.insert(0, str(ROOT))

from kvlab.course.exercises import Exercise, find_exercise

CHECK = re.compile(r'\bcheck\("(\d\d-[a-z])", (\w+)\)')
CALL = re.compile(r'\b(?:hint_steps|hint|solution)\("(\d\d-[a-z])"\)')
COLAB_LINE = re.compile(r"^\[Open in Colab\]\([^)]*\)\n\n?", re.MULTILINE)
SAVED = re.compile(
    r"The results of a run are saved in this page\. .*$"
    r"|\*\*Saved results are in the page\*\*.*$",
    re.MULTILINE,
)
FOLDED = "Hints and worked solutions are folded; open as much as you need."
UNTIL = 'Each check says "not answered yet" until you replace the `...`.'


def is_code(cell: NotebookNode, tag: str) -> bool:
    """Return whether this is a code cell with the tag."""
    return cell.cell_type == "code" and tag in tags_of(cell)


def exercise_of(cell: NotebookNode) -> Exercise | None:
    """Return the exercise that a check, hint or solution cell names; None for any other cell."""
    if cell.cell_type != "code":
        return None
    found = CHECK.search(cell.source) or CALL.search(cell.source)
    return find_exercise(found[1]) if found else None


def answers(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, NotebookNode, Exercise]]:
    """Yield each exercise's answer cell, its check cell and what it is, in order.

    Raises `ValueError` when an answer cell is followed by no check of its own.
    """
    waiting: NotebookNode | None = None
    for cell in notebook.cells:
        if is_code(cell, "exercise"):
            if waiting is not None:
                raise ValueError(f"no check follows the exercise\n{waiting.source}")
            waiting = cell
        elif is_code(cell, "check") and waiting is not None:
            exercise = exercise_of(cell)
            if exercise is None:
                raise ValueError(f"the check names no exercise\n{cell.source}")
            yield waiting, cell, exercise
            waiting = None
    if waiting is not None:
        raise ValueError(f"no check follows the exercise\n{waiting.source}")


def without_calls(source: str, *names: str) -> str:
    """Return code whose import line of `kvlab.course` no longer names these tools.

    >>> without_calls("from kvlab.course import check, hint_steps, solution", "solution")
    'from kvlab.course import check, hint_steps'
    """

    def kept(line: re.Match[str]) -> str:
        return line[1] + ", ".join(n for n in line[2].split(", ") if n not in names)

    return re.sub(r"^(from kvlab\.course import )(.+)$", kept, source, flags=re.MULTILINE)


def headed(notebook: NotebookNode, text: str, colab: str | None) -> None:
    """Put the edition's own line at the top, and let the link to Colab go or point to `colab`."""
    link = f"[Open in Colab]({colab})\n\n" if colab else ""
    notebook.cells[0].source = COLAB_LINE.sub(link, notebook.cells[0].source)
    notebook.cells.insert(0, new_markdown_cell(text, id="edition"))


def renumbered(notebook: NotebookNode) -> None:
    """Count the code cells from 1, as a run from the top does."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    for number, cell in enumerate(code, start=1):
        cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number

"""The student edition of a chapter: no solutions, no results, nothing that spoils a guess.

What stays: every explanation, every exercise, and the hints that leave the last step to the
learner. Nothing is run for it. The course's package still knows the worked solutions, as it knows
the checks; this edition only shows nobody the way to them.
"""

import copy
import re

from chapter_pairs import tags_of
from edition_parts import FOLDED, SAVED, exercise_of, headed, without_calls
from nbformat import NotebookNode

from kvlab.course.exercises import Exercise

SHORTEST = 12  # signs: a shorter piece of code, such as `k @ q`, gives no answer away


def student_edition(notebook: NotebookNode, chapter: str, colab: str | None = None) -> NotebookNode:
    """Return the student edition of an executed chapter; `colab` is an address for its link."""
    edition = copy.deepcopy(notebook)
    edition.cells = [cell for cell in edition.cells if stays(cell)]
    for cell in edition.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.source = without_calls(cell.source, "solution")
        else:
            cell.source = SAVED.sub(NOTHING_SAVED, cell.source)
            cell.source = cell.source.replace(FOLDED, "Hints are folded.")
    headed(edition, f"*Student edition of chapter {chapter}: no solutions, no results.*", colab)
    return edition


NOTHING_SAVED = (
    "**No results are saved in this page.** Run each cell with Shift+Enter, from the top, and "
    "guess before you look."
)


def stays(cell: NotebookNode) -> bool:
    """Return whether a cell belongs into the student edition."""
    if {"solution", "instructor"} & set(tags_of(cell)):
        return False
    exercise = exercise_of(cell) if "hint" in tags_of(cell) else None
    return exercise is None or not giving_away(exercise)


def giving_away(exercise: Exercise) -> list[str]:
    """Return the hints of an exercise that hold a whole line's work of its solution.

    >>> from kvlab.course.exercises import find_exercise
    >>> giving_away(find_exercise("01-a"))
    ['The output is the sum of the values, each times its weight: `weights @ values`.']
    """
    telling = {piece for line in code_lines(exercise.solution) if (piece := right_side(line))}
    return [hint for hint in exercise.hints if any(piece in squeezed(hint) for piece in telling)]


def right_side(line: str) -> str:
    """Return what a line of a solution computes, squeezed; "" where it is too short to tell."""
    work = re.sub(r"^(?:return\b|[\w, \[\]-]+(?<![=<>!])=(?!=))", "", squeezed(line))
    return work if len(work) >= SHORTEST else ""


def code_lines(solution: str) -> list[str]:
    """Return the lines of a solution that work, without comments, imports and headers."""
    lines = (line.split("  #")[0].strip() for line in solution.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "import", "from", "def"))]


def squeezed(text: str) -> str:
    """Return a text without white space.

    >>> squeezed("a = b + 1")
    'a=b+1'
    """
    return re.sub(r"\s+", "", text)

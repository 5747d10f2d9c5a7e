"""The instructor edition of a chapter: answers filled in, checks passed, notes beside them.

The outputs of the checks come from a kernel that runs the filled answers; those of all other
cells are the chapter's own, or new ones when the whole chapter is run.
"""

import copy
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

from chapter_pairs import CHAPTERS, tags_of
from edition_parts import CHECK, FOLDED, SAVED, UNTIL, answers, headed, renumbered, without_calls
from edition_student import giving_away
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from run_notebook import run_notebook

from kvlab.course.exercises import Exercise
from kvlab.course.grading import Grade, grade_number
from kvlab.course.guarded import grade_function
from kvlab.course.shape_answers import grade_shape

Grader = Callable[..., Grade]
GRADERS: tuple[Grader, ...] = (grade_number, grade_function, grade_shape)
TOP = (
    "*Instructor edition of chapter {chapter}: answers filled in, not for students. A note for you "
    "follows each check. Exercises: {exercises}.*"
)


def instructor_edition(
    notebook: NotebookNode, chapter: str, colab: str | None = None, *, whole: bool = False
) -> NotebookNode:
    """Return the instructor edition of an executed chapter.

    `whole` runs every cell anew. Raises `CellFailed` when one fails, `ValueError` when an answer
    does not pass its check.
    """
    edition = copy.deepcopy(notebook)
    edition.cells = [cell for cell in edition.cells if "solution" not in tags_of(cell)]
    parts = list(answers(edition))
    for answer, check, exercise in parts:
        answer.source, answer.outputs = filled(exercise, check), []
        check.source = without_calls(check.source, "solution")
        place = edition.cells.index(check) + 1
        edition.cells.insert(place, note_on(exercise))
    for cell in edition.cells:
        if cell.cell_type == "markdown":
            cell.source = SAVED.sub("", cell.source).rstrip()
            cell.source = cell.source.replace(f"{UNTIL} {FOLDED}", "Each check passes here.")
    fill_outputs(edition, parts, whole=whole)
    names = ", ".join(f"{exercise.id} {exercise.title}" for _, _, exercise in parts)
    headed(edition, TOP.format(chapter=chapter, exercises=names), colab)
    renumbered(edition)
    return edition


def filled(exercise: Exercise, check: NotebookNode) -> str:
    """Return the worked solution, under the name that this chapter's check asks for."""
    found = CHECK.search(check.source)
    wanted = found[2] if found else "answer"
    return re.sub(r"^answer(?= =)", wanted, exercise.solution.rstrip(), flags=re.MULTILINE)


def fill_outputs(
    edition: NotebookNode,
    parts: list[tuple[NotebookNode, NotebookNode, Exercise]],
    *,
    whole: bool,
) -> None:
    """Run the answers and checks, or the whole edition; raise unless every check passes.

    An answer may use what the chapter has made above it: then the whole edition is run.
    """
    cells = [cell for answer, check, _ in parts for cell in (answer, check)]
    running = edition if whole else new_notebook(cells=cells, metadata=edition.metadata)
    run_notebook(running, CHAPTERS)
    if not whole and any(failed(check, exercise) for _, check, exercise in parts):
        run_notebook(edition, CHAPTERS)
    for _, check, exercise in parts:
        if (said := failed(check, exercise)) is not None:
            raise ValueError(f"the solution of {exercise.id} does not pass: {said!r}")


def failed(check: NotebookNode, exercise: Exercise) -> str | None:
    """Return what a check said where that is not its praise; None when it passed."""
    said = "".join(output.get("data", {}).get("text/plain", "") for output in check.outputs)
    return None if said.startswith(f"{exercise.id}: Right") else said


def note_on(exercise: Exercise) -> NotebookNode:
    """Return the instructor's note beside an exercise: its hints in steps, known wrong ways."""
    where = "not in the student edition: give them yourself" if giving_away(exercise) else ""
    hints = f"Hints, in steps{f' ({where})' if where else ''}:"
    lines = [f"**For the instructor, {exercise.id}.** {hints}", ""]
    lines += [f"{number}. {hint}" for number, hint in enumerate(exercise.hints, start=1)]
    if known := known_mistakes(exercise):
        lines += ["", "Wrong answers that the check knows, and what it says to them:", ""]
        lines += [f"- *{name.replace('-', ' ')}*: {feedback}" for name, feedback in known]
    note = new_markdown_cell("\n".join(lines), id=f"note-{exercise.id}")
    note.metadata = NotebookNode(tags=["instructor"])
    return note


def known_mistakes(exercise: Exercise) -> list[tuple[str, str]]:
    """Return (name, what the check says) of each wrong way that an exercise's check knows.

    They are read where the check hands them to its grader. A check with a grader of its own
    shows none here.
    """
    found: list[tuple[str, str]] = []
    room = exercise.grade.__globals__  # type: ignore[attr-defined]
    watched = {
        name: watching(value, found)
        for name, value in room.items()
        if any(value is grader for grader in GRADERS)
    }
    with mock.patch.dict(room, watched):
        exercise.grade(...)
    return list(dict.fromkeys(found))


def watching(grader: Grader, found: list[tuple[str, str]]) -> Grader:
    """Return a grader that notes the wrong ways it is given, then grades as ever."""

    def grade(answer: object, *rest: Any, **named: Any) -> Grade:
        for value in (*rest, *named.values()):
            ways = getattr(value, "misconceptions", value)
            if isinstance(ways, list | tuple):
                found.extend((way.id, way.feedback) for way in ways if hasattr(way, "feedback"))
        return grader(answer, *rest, **named)

    return grade

"""Exercises: check an answer, ask for a hint (one step a call), open the worked solution.

An exercise lives in `exercises_NN` for chapter NN. Its stub is a name (`answer = ...` or
`answer_a = ...`) or a function whose body is `...`; while it is, the check says "not answered
yet", so a notebook runs green untouched.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

from kvlab.course.grading import Grade, Verdict
from kvlab.course.html import box, code, fold, words
from kvlab.errors import InvalidArgument

_HEADINGS = {
    Verdict.RIGHT: ("right", "Right."),
    Verdict.NOT_ANSWERED: ("open", "Not answered yet."),
    Verdict.UNREADABLE: ("open", "Not answered yet."),
}


@dataclass(frozen=True)
class Exercise:
    """One exercise. `why` is the reason given for a right answer, `solution` is code or text."""

    id: str
    title: str
    statement: str
    grade: Callable[[object], Grade] = field(repr=False)
    why: str = field(repr=False)
    hints: tuple[str, ...] = field(repr=False)
    solution: str = field(repr=False)
    stub: str = "answer = ..."


@dataclass(frozen=True)
class CheckResult:
    """What a check says: the grade in words, and the reason when it is right."""

    exercise_id: str
    grade: Grade
    why: str = ""

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.grade.right

    @property
    def text(self) -> str:
        """The feedback as plain text."""
        return f"{self.grade.feedback} {self.why}".strip()

    def __repr__(self) -> str:
        return f"{self.exercise_id}: {self.text}"

    def _repr_html_(self) -> str:
        kind, heading = _HEADINGS.get(self.grade.verdict, ("wrong", "Not yet."))
        rest = re.sub(r"^(Right|Not right|Not answered yet)[.:]\s*", "", self.text)
        return box(kind, f"{self.exercise_id} · {heading}", words(rest))


@dataclass(frozen=True)
class Shown:
    """Hints or a solution: HTML in a notebook, `.text` elsewhere."""

    heading: str
    text: str = field(repr=False)
    html: str = field(repr=False)

    def __repr__(self) -> str:
        return self.heading

    def _repr_html_(self) -> str:
        return self.html


def exercises_of(chapter: str) -> tuple[Exercise, ...]:
    """Return the exercises of a chapter, in order.

    >>> [exercise.id for exercise in exercises_of("01")]
    ['01-a', '01-b', '01-c', '01-d']
    """
    name = f"kvlab.course.exercises_{chapter}"
    if not re.fullmatch(r"[0-9]{2}", str(chapter)) or find_spec(name) is None:
        raise InvalidArgument("chapter", chapter, 'has no exercises; write it as "01"')
    return tuple(import_module(name).EXERCISES)


def find_exercise(exercise_id: str) -> Exercise:
    """Return an exercise by its id, such as "01-a"; raises `InvalidArgument` otherwise."""
    for exercise in exercises_of(str(exercise_id)[:2]):
        if exercise.id == exercise_id:
            return exercise
    known = ", ".join(exercise.id for exercise in exercises_of(str(exercise_id)[:2]))
    raise InvalidArgument("exercise_id", exercise_id, f"must be one of {known}")


def check(exercise_id: str, answer: object) -> CheckResult:
    """Check an answer; never raises for any answer, and never prints the expected one.

    >>> check("02-d", ...)
    02-d: Not answered yet.
    """
    exercise = find_exercise(exercise_id)
    try:
        grade = exercise.grade(answer)
    except Exception as error:  # an answer of a strange type must not end in our traceback
        grade = Grade(Verdict.UNREADABLE, f"Not answered yet: {type(error).__name__}.")
    return CheckResult(exercise.id, grade, exercise.why if grade.right else "")


_steps_shown: dict[str, int] = {}


def hint(exercise_id: str) -> Shown:
    """Return the hints so far; each call adds the next step."""
    exercise = find_exercise(exercise_id)
    shown = min(_steps_shown.get(exercise.id, 0) + 1, len(exercise.hints))
    _steps_shown[exercise.id] = shown
    lines = [f"{i}. {text}" for i, text in enumerate(exercise.hints[:shown], 1)]
    left = len(exercise.hints) - shown
    lines.append(f"Run it again for the next step ({left} more)." if left else "No more steps.")
    heading = f"Hint {shown} of {len(exercise.hints)} for {exercise.id}"
    text = "\n".join(lines)
    return Shown(f"{heading}\n{text}", text, box("hint", f"{heading}.", "<br>" + words(text)))


def forget_hints() -> None:
    """Start again with the first hint of every exercise."""
    _steps_shown.clear()


def hint_steps(exercise_id: str) -> Shown:
    """Return all hints, each folded inside the one before: a gesture for every step, no kernel.

    >>> hint_steps("02-d")
    Hints for 02-d: see .text
    """
    exercise = find_exercise(exercise_id)
    count, inner = len(exercise.hints), ""
    for number in range(count, 0, -1):
        inner = fold(f"Hint {number} of {count}", words(exercise.hints[number - 1]) + inner)
    text = "\n".join(f"{i}. {one}" for i, one in enumerate(exercise.hints, 1))
    return Shown(f"Hints for {exercise.id}: see .text", text, inner)


def solution(exercise_id: str) -> Shown:
    """Return the worked solution, folded: it takes one more gesture to see it."""
    exercise = find_exercise(exercise_id)
    heading = f"Worked solution of {exercise.id}"
    inner = code(exercise.solution) + box("solution", "Why.", words(exercise.why))
    return Shown(f"{heading}: see .text", exercise.solution, fold(heading, inner))

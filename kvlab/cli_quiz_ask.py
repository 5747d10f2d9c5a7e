"""One sitting of `kvlab quiz`: ask, read what is typed, save the answer, then say the verdict."""

import sys
from enum import StrEnum
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvlab.course.asked import Asked
    from kvlab.course.progress import Progress

WIDTH = 88


class Outcome(StrEnum):
    """What became of a question; `LATER` is right after a miss, which still comes back."""

    RIGHT = "right"
    LATER = "right at a later try"
    WRONG = "wrong"
    SKIPPED = "skipped"


class Sitting:
    """What was answered in one go: the outcome of each question, and how many answers were saved.

    >>> import tempfile; from pathlib import Path
    >>> from kvlab.course.progress import Progress
    >>> Sitting(Progress(Path(tempfile.mkdtemp()) / "p.json")).says()
    'nothing was answered'
    """

    def __init__(self, progress: "Progress") -> None:
        self.progress = progress
        self.outcomes: dict[str, Outcome] = {}
        self.given = self.saved = 0
        self._told = ""

    def keep(self, asked: "Asked", verdict: object, *, right: bool) -> None:
        """Save an answer at once; what went wrong with that is said at once, too."""
        name = asked.question.id
        self.given += 1
        self.saved += self.progress.record(name, str(verdict), right=right, seed=asked.seed)
        again = name in self.outcomes
        self.outcomes[name] = (
            Outcome.WRONG if not right else Outcome.LATER if again else Outcome.RIGHT
        )
        self.tell()

    def skip(self, asked: "Asked") -> None:
        """Note that a question was skipped; one that was answered already stays answered."""
        self.outcomes.setdefault(asked.question.id, Outcome.SKIPPED)

    def tell(self) -> None:
        """Say on stderr what went wrong with the file, once."""
        if self.progress.note not in ("", self._told):
            print(self.progress.note, file=sys.stderr)
        self._told = self.progress.note

    def says(self) -> str:
        """Return how many answers are in the file."""
        if not self.given:
            return "nothing was answered"
        if not self.saved:
            return "no answer is kept"
        if self.saved < self.given:
            return f"{self.saved} of {say_count(self.given, 'answer')} kept"
        return f"{say_count(self.given, 'answer')} kept"


def say_count(number: int, thing: str) -> str:
    """Write a count with its noun.

    >>> say_count(1, "question"), say_count(2, "answer")
    ('1 question', '2 answers')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def put(asked: "Asked", heading: str, sitting: Sitting) -> None:
    """Ask one question until it is right, skipped or shown; raise `EOFError` to stop here."""
    from kvlab.course.question_html import how_to_answer

    question = asked.question
    print(f"{heading}  [{question.topic}, chapter {question.chapter}]")
    print(fill(asked.text, WIDTH))
    for letter, option in zip("ABCDEFGHIJ", asked.options, strict=False):
        print(fill(f"{letter}  {option}", WIDTH, initial_indent="  ", subsequent_indent="     "))
    if question.kind == "open":
        _hear(asked, sitting)
        return
    print(f"({how_to_answer(asked)})")
    while True:
        typed = read_line()
        if typed == "s":
            return sitting.skip(asked)
        if typed == "?":
            return _show(asked, asked.solution(), sitting)
        grade = asked.grade(typed)
        if grade.answered:
            sitting.keep(asked, grade.verdict, right=grade.right)
        if typed:
            opening = "" if grade.feedback.startswith(("Right", "Not ", "Near")) else "Not yet. "
            print(fill(opening + grade.feedback, WIDTH))
        if grade.right:
            return
        if grade.answered:
            print("Try again, or ? for the answer.")


def _show(asked: "Asked", answer: str, sitting: Sitting) -> None:
    """Show the worked answer; asking for it counts as a miss."""
    sitting.keep(asked, "shown", right=False)
    print("\n".join(fill(line, WIDTH) for line in answer.split("\n")))


def _hear(asked: "Asked", sitting: Sitting) -> None:
    """Let the learner speak, then mark the points of the rubric."""
    from kvlab.course.practice import own_mark, spoken_answer

    rubric = asked.question.rubric  # type: ignore[attr-defined]
    print("Say your answer aloud, then press Enter to see the points. ? shows them, s skips.")
    typed = read_line()
    if typed == "s":
        return sitting.skip(asked)
    answer = spoken_answer(asked.question)  # type: ignore[arg-type]
    if typed == "?":
        return _show(asked, answer, sitting)
    print("\n".join(fill(line, WIDTH, subsequent_indent="   ") for line in answer.split("\n")))
    made = _read_points(len(rubric))
    if made is None:
        return sitting.skip(asked)
    verdict, right = own_mark(made, len(rubric))
    sitting.keep(asked, verdict, right=right)
    print(f"{verdict} points.")
    if 1 not in made:
        print("The first point is the scope: say it before any number.")


def _read_points(total: int) -> frozenset[int] | None:
    """Ask which of `total` points were made until it can be read; None when that is skipped."""
    from kvlab.course.marks import read_marks
    from kvlab.course.typed import Unread

    print("Which points did you make? Such as 1 3, 1-3 or all; Enter for none.")
    while True:
        typed = read_line()
        if typed == "s":
            return None
        made = read_marks(typed, total)
        if not isinstance(made, Unread):
            return made
        print(f"This cannot be read: {made.reason}.")


def read_line() -> str:
    """Return a typed line; q, the end of the input and Ctrl+D stop by `EOFError`."""
    print("> ", end="", flush=True)
    typed = sys.stdin.readline() if sys.stdin is not None else ""
    if not typed or typed.strip() == "q":
        raise EOFError
    return typed.strip()

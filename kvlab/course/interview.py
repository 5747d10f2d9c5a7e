"""A timed interview as a state: what is asked now, what was answered, and when it has ended.

No feedback is given before the end. Each answer is kept at once; a spoken one as not marked yet,
until its points are ticked after the end.
"""

import time
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from numbers import Real

from kvlab.course.asked import Asked
from kvlab.course.grading import Grade, Verdict
from kvlab.course.mock import Stopwatch
from kvlab.course.picked import LETTERS
from kvlab.course.practice import NOT_MARKED, TopicScore, own_mark, score_by_topic
from kvlab.course.progress import Progress
from kvlab.course.questions import OpenQuestion
from kvlab.errors import InvalidArgument

LONGEST = 24 * 60
"""Minutes of the longest interview: a day."""


def with_options(asked: Asked) -> str:
    """Return a question as text, with its options or lines below it, each with its letter."""
    pairs = zip(LETTERS, asked.options, strict=False)
    return "\n".join([asked.text, *(f"{letter}. {option}" for letter, option in pairs)])


class Stage(StrEnum):
    """How far an interview is; `MARKING` is for one's own spoken answers, after the end."""

    READY = "ready"
    RUNNING = "running"
    STOPPED = "stopped"
    MARKING = "marking"
    DONE = "done"


class Interview:
    """An interview over `asked` of so many minutes; `now` tells the time in seconds.

    >>> from kvlab.course.mock import draw_interview
    >>> talk = Interview(draw_interview(1, spoken=0, graded=2), minutes=5)
    >>> talk.go(); talk.next(); talk.next()
    >>> talk.stage.value, talk.score()
    ('done', (0, 2))
    """

    def __init__(
        self,
        asked: Sequence[Asked],
        *,
        minutes: float,
        progress: Progress | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if not asked:
            raise InvalidArgument("asked", [], "must hold one question or more")
        self.asked, self.progress = list(asked), progress
        self.watch = Stopwatch(60 * _check_minutes(minutes), now)
        self.stage, self.place = Stage.READY, 0
        self.grades: dict[int, Grade] = {}
        self._unmarked: list[int] = []

    @property
    def current(self) -> Asked:
        """The question that is asked, or marked, now."""
        return self.asked[self.place]

    @property
    def note(self) -> str:
        """What went wrong with keeping the answers, if anything did."""
        return "" if self.progress is None else self.progress.note

    @property
    def is_spoken(self) -> bool:
        """Whether the current question is answered aloud."""
        return isinstance(self.current.question, OpenQuestion)

    def go(self) -> None:
        """Start, stop the clock, or go on; nothing after the end."""
        if self.stage is Stage.RUNNING:
            if not self.check_time():
                self.watch.stop()
                self.stage = Stage.STOPPED
        elif self.stage in (Stage.READY, Stage.STOPPED):
            self.watch.go()
            self.stage = Stage.RUNNING

    def answer(self, typed: str) -> bool:
        """Take an answer and go on; False for one that is late or can't be read.

        Saying that it can't be read is about its form: it tells nothing about the answer.
        """
        if self.stage is not Stage.RUNNING or self.check_time():
            return False
        grade = self.current.grade(typed)
        if not grade.answered:
            return False
        self._keep(grade, grade.verdict)
        self._move_on()
        return True

    def next(self) -> None:
        """Go on: a spoken question has been answered aloud, another stays without an answer."""
        if self.stage is Stage.RUNNING and not self.check_time():
            if self.is_spoken:
                self._unmarked.append(self.place)
                self._record(NOT_MARKED, right=False)
            self._move_on()

    def mark(self, made: Collection[int]) -> None:
        """Keep the points one made in the spoken answer that is being marked, and go on."""
        question = self.current.question
        if self.stage is Stage.MARKING and isinstance(question, OpenQuestion):
            words, right = own_mark(made, len(question.rubric))
            verdict = Verdict.RIGHT if right else Verdict.WRONG
            self._keep(Grade(verdict, f"{words} points, marked by you."), words)
            self._unmarked.pop(0)
            self._to_marking()

    def end(self) -> None:
        """End it: mark what was spoken, then it is done."""
        if self.stage not in (Stage.MARKING, Stage.DONE):
            self.watch.stop()
            self._to_marking()

    def check_time(self) -> bool:
        """End the interview if its time is up; say whether that is so."""
        if self.stage is Stage.RUNNING and self.watch.over:
            self.end()
            return True
        return False

    def score(self) -> tuple[int, int]:
        """Return (right, asked): a question without an answer is not right."""
        return sum(grade.right for grade in self.grades.values()), len(self.asked)

    def by_topic(self) -> list[TopicScore]:
        """Return the score by topic of this interview alone, with chapters to reread."""
        answers = {
            asked.question.id: [{"right": i in self.grades and self.grades[i].right}]
            for i, asked in enumerate(self.asked)
        }
        return score_by_topic(answers, [asked.question for asked in self.asked])

    def _move_on(self) -> None:
        if self.place + 1 < len(self.asked):
            self.place += 1
        else:
            self.end()

    def _to_marking(self) -> None:
        self.stage = Stage.MARKING if self._unmarked else Stage.DONE
        if self._unmarked:
            self.place = self._unmarked[0]

    def _keep(self, grade: Grade, words: str) -> None:
        self.grades[self.place] = grade
        self._record(words, right=grade.right)

    def _record(self, words: str, *, right: bool) -> None:
        if self.progress is not None:
            question, seed = self.current.question, self.current.seed
            self.progress.record(question.id, words, right=right, seed=seed)


def _check_minutes(minutes: float) -> float:
    """Return the minutes of an interview, or say what they must be."""
    number = isinstance(minutes, Real) and not isinstance(minutes, bool)
    if not number or not 0 < minutes <= LONGEST:  # nan is neither
        raise InvalidArgument("minutes", minutes, f"must be a number above 0, at most {LONGEST:,}")
    return float(minutes)

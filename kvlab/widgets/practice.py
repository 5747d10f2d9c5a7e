"""Practice by topic, and review of what was missed: the quiz, with a choice of what to ask.

Every answer is kept the moment it is checked. Nothing moves by itself, and no mouse is needed.
"""

from random import randrange

import ipywidgets as widgets

from kvlab.course.asked import Asked, ask
from kvlab.course.bank import select_questions
from kvlab.course.practice import among, review_today, today
from kvlab.course.progress import Progress
from kvlab.course.questions import LEVELS
from kvlab.course.schema import TOPICS
from kvlab.errors import InvalidArgument
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import dropdown, observe_once
from kvlab.widgets.quiz import Quiz

EVERY, DUE = "every topic", "misses that are due"
LEVEL_WORDS = {"every level": 0, **{f"{n} {words}": n for n, words in LEVELS.items()}}


class Practice(Quiz):
    """A quiz with the controls `what` (a topic, every topic, or the misses due) and `level`."""

    def __init__(self, progress: Progress, *, what: str = EVERY, seed: int | None = None) -> None:
        self.seed = seed
        self.remark = ""
        if what not in (EVERY, DUE, *TOPICS):
            rule = f'must be a topic, "{EVERY}" or "{DUE}"'
            raise InvalidArgument("what", what, rule)
        self._what = what
        first = ask(select_questions(), seed=self._drawn(), count=1)
        super().__init__(first, progress=progress, fixed=seed is not None)
        for name in ("what", "level"):
            observe_once(self.controls[name], self._on_choice)
        self.choose()

    def _make_controls(self) -> dict[str, widgets.Widget]:
        choices = [EVERY, DUE, *TOPICS]
        levels = list(LEVEL_WORDS.items())
        made: dict[str, widgets.Widget] = {"what": dropdown("practise", choices, self._what)}
        made["level"] = dropdown("level", levels, 0)
        return made | super()._make_controls()

    def _drawn(self) -> int:
        return randrange(10**6) if self.seed is None else self.seed

    def _on_choice(self, change: object) -> None:
        self.choose()

    def choose(self) -> None:
        """Ask what the two choices say, from the first question on."""
        what, level = self.controls["what"].value, self.controls["level"].value or None
        self.remark = ""
        if what == DUE:
            chosen = self._due(level)
        else:
            topic = None if what == EVERY else what
            pool = select_questions(topic=topic, level=level)
            chosen = ask(pool, seed=self._drawn(), count=len(pool)) if pool else []
        if not chosen:
            self.remark = self.remark or "No question is like that: choose another level."
            self._draw()
            return
        self.asked, self.right = chosen, set()
        self._turn_to(0)

    def _due(self, level: int | None) -> list[Asked]:
        """Return the misses of a level that are due, or say when the next one is."""
        assert self.progress is not None
        bank = {question.id: question for question in select_questions(level=level)}
        answers = self.progress.answers()
        due, self.remark = review_today(answers, today(), bank, of=among(None, level))
        if not due:
            self.remark += " The question above stays."
        return [Asked(bank[one.question_id], self._drawn()) for one in due]

    def show_frame(self, frame: Frame) -> None:
        """Put a frame on the page, with what the choice of questions has to say."""
        said = " ".join(words for words in (self.remark, frame.event) if words)
        super().show_frame(Frame(frame.picture, frame.readout, said, frame.numbers_in_picture))


def practice(
    what: str = EVERY, *, progress: Progress | None = None, seed: int | None = None
) -> Practice:
    """Return practice on a topic, on every topic, or on the misses that are due today.

    Answers are kept in the learner's own file, or where `progress` says; with a `seed` the same
    questions and numbers come again.

    >>> practice("memory", seed=1).current.question.topic
    'memory'
    """
    return Practice(Progress() if progress is None else progress, what=what, seed=seed)

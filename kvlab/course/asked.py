"""A question as it is asked: fresh numbers from a seed, options in a seeded order, grading.

The expected answer is worked out when it is needed and never kept, so that neither a repr nor a
saved state can show it before `solution()` is called.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.course.calls import draw, evaluate
from kvlab.course.grading import Grade, Misconception, Target, Verdict, grade_number, unread_grade
from kvlab.course.picked import grade_order, grade_pick
from kvlab.course.questions import (
    ChoiceQuestion,
    NumericQuestion,
    OpenQuestion,
    OrderQuestion,
    Question,
    ShapeQuestion,
)
from kvlab.course.shape_answers import WrongShape, grade_shape, write_shape
from kvlab.course.typed import Unread

OWN_MARK = "Open questions are marked by yourself, with the rubric."


@dataclass(frozen=True)
class Asked:
    """One asking of a question; the same question and seed always give the same text.

    >>> from kvlab.course.bank import find_question
    >>> asked = Asked(find_question("02-cached-forwards"), seed=1)
    >>> asked.grade("...").verdict.value
    'not answered yet'
    """

    question: Question
    seed: int = 0

    @property
    def values(self) -> dict[str, Any]:
        """The fresh numbers by name (none for kinds without)."""
        if isinstance(self.question, NumericQuestion | ShapeQuestion):
            fresh = self.question.fresh
            return draw(fresh.numbers, fresh.cases, f"{self.question.id}:{self.seed}")
        return {}

    @property
    def text(self) -> str:
        """The question as one reads it."""
        fresh = isinstance(self.question, NumericQuestion | ShapeQuestion)
        return self.question.text.format(**self.values) if fresh else self.question.text

    @property
    def options(self) -> tuple[str, ...]:
        """The options, lines or shuffled steps to pick from; empty for other kinds."""
        if isinstance(self.question, ChoiceQuestion):
            return tuple(self.question.options[i].text for i in self._order())
        if isinstance(self.question, OrderQuestion):
            return tuple(self.question.steps[i] for i in self._order())
        return ()

    def grade(self, answer: object) -> Grade:
        """Grade an answer of any type; never raises and never tells the answer."""
        try:
            return self._grade(answer)
        except Exception:  # an answer of a strange type must not end in a traceback of ours
            return unread_grade(Unread("it is not an answer that can be read"))

    def _grade(self, answer: object) -> Grade:
        """Grade by the kind of question."""
        question = self.question
        if isinstance(question, NumericQuestion):
            return grade_number(answer, self._target(question))
        if isinstance(question, ShapeQuestion):
            return grade_shape(
                answer, self._expected(), question.axes, self._wrong_shapes(question)
            )
        if isinstance(question, ChoiceQuestion):
            return grade_pick(answer, [question.options[i] for i in self._order()])
        if isinstance(question, OrderQuestion):
            return grade_order(answer, self._order(), question.steps, question.whys)
        return Grade(Verdict.NOT_ANSWERED, OWN_MARK)

    def solution(self) -> str:
        """Return the worked answer; ask for it only when it may be seen."""
        question = self.question
        if isinstance(question, NumericQuestion | ShapeQuestion):
            shown = write_answer(self._expected(), question)
            return question.explain.format(**self.values, answer=shown)
        if isinstance(question, OpenQuestion):
            points = " ".join(f"({i}) {point}" for i, point in enumerate(question.rubric, 1))
            spoken = f"In 30 seconds: {question.in_30_seconds}"
            return f"{spoken}\nIn two minutes: {question.in_two_minutes}\nPoints: {points}"
        return f"{self._right_pick()}\n{question.explain}"

    def _right_pick(self) -> str:
        """Return the right option or the right order in words."""
        if isinstance(self.question, ChoiceQuestion):
            options = [self.question.options[i] for i in self._order()]
            place = next(i for i, option in enumerate(options) if option.right)
            return f"{'ABCDEFGHIJ'[place]}. {options[place].text} {options[place].why}"
        assert isinstance(self.question, OrderQuestion)
        return " ".join(f"{i}. {step}" for i, step in enumerate(self.question.steps, 1))

    def _order(self) -> list[int]:
        """Return which option stands at each place; lines of a card keep their order."""
        question = self.question
        count = len(question.options if isinstance(question, ChoiceQuestion) else question.steps)
        order = list(range(count))
        if question.kind != "find-error":
            random = Random(f"{question.id}:{self.seed}")
            random.shuffle(order)
            if question.kind == "order" and order == sorted(order):
                order.reverse()
        return order

    def _expected(self) -> Any:
        """Work out the answer."""
        return evaluate(self.question.fresh.answer, self.values)

    def _target(self, question: NumericQuestion) -> Target:
        """Return what the number is compared with."""
        known = tuple(
            Misconception(way.id, evaluate(way.value, self.values), way.feedback)
            for way in question.fresh.wrong_ways
        )
        return Target(
            self._expected(),
            unit=question.unit,
            exact=question.exact,
            tolerance=question.tolerance,
            words=question.words,
            per=question.per,
            misconceptions=known,
        )

    def _wrong_shapes(self, question: ShapeQuestion) -> list[WrongShape]:
        """Return the known wrong shapes with what to say to each."""
        return [
            WrongShape(way.id, tuple(evaluate(way.value, self.values)), way.feedback)
            for way in question.fresh.wrong_ways
        ]


def ask(questions: Sequence[Question], *, seed: int, count: int | None = None) -> list[Asked]:
    """Return `count` of the questions (all by default) in a seeded order with fresh numbers."""
    order, seed = list(questions), whole_number("seed", seed, minimum=0)
    if count is not None:
        order = Random(seed).sample(order, min(whole_number("count", count), len(order)))
    return [Asked(question, seed) for question in order]


def write_answer(value: Any, question: Question) -> str:
    """Write an expected answer with its unit.

    >>> write_answer((1, 8, 16, 128), None)
    '(1, 8, 16, 128)'
    """
    if isinstance(value, tuple | list):
        return write_shape(value)
    unit = getattr(question, "unit", "")
    if unit == "B":
        from kvlab.arithmetic.units import format_bytes

        return f"{int(value):,} bytes = {format_bytes(int(value))}" if value >= 1024 else f"{value}"
    whole = isinstance(value, int) or abs(value) >= 1000
    number = f"{value:,.0f}" if whole else f"{value:.4g}"
    return f"{number} {unit}".strip() if unit not in {"x", "%"} else number + unit

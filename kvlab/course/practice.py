"""What to practise: which misses are due, the score by topic, and how one marks oneself.

All of it is a function of the answers kept by `Progress.answers` and of a day; nothing is written.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from kvlab.course.questions import OpenQuestion, Question

LAST_DAY = date(9000, 1, 1)
STEPS = (1, 3, 7, 14, 28, 56)
"""Days until a missed question comes back: after the miss, then after each right answer."""

NOT_MARKED = "not marked yet"
"""The verdict of an answer that was spoken in an interview and has no points yet."""

Answers = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Due:
    """A missed question and the day on which it comes back; `step` counts right answers since."""

    question_id: str
    day: date
    step: int

    def overdue(self, today: date) -> int:
        """Return the days since it was due, negative while it is still to come."""
        return (today - self.day).days


def today() -> date:
    """Return the day of now, as answers are dated: in UTC."""
    return datetime.now(UTC).date()


def next_due(kept: Sequence[Mapping[str, Any]]) -> tuple[date, int] | None:
    """Return (day, step) of a question's next review, or None if it needs none.

    A miss comes back after a day. A right answer on the day it is due, or later, moves it on; an
    earlier one changes nothing. After the last of `STEPS` it has been learnt.

    >>> days = [("2026-03-02", False), ("2026-03-02", True), ("2026-03-03", True)]
    >>> next_due([{"when": f"{day}T09:00:00+00:00", "right": right} for day, right in days])
    (datetime.date(2026, 3, 6), 1)
    """
    due: tuple[date, int] | None = None
    for day, right in _marked(kept):
        if day > LAST_DAY:  # no calendar of ours goes on after it
            continue
        if not right:
            due = (day + timedelta(STEPS[0]), 0)
        elif due is not None and day >= due[0]:
            step = due[1] + 1
            due = (day + timedelta(STEPS[step]), step) if step < len(STEPS) else None
    return due


def reviews(answers: Answers, known: Collection[str] | None = None) -> list[Due]:
    """Return all questions under review, the longest due first; `known` ids only, if given."""
    found = []
    for item, kept in answers.items():
        due = next_due(kept) if known is None or item in known else None
        if due is not None:
            found.append(Due(item, *due))
    return sorted(found, key=lambda one: (one.day, one.question_id))


def due_today(answers: Answers, day: date, known: Collection[str] | None = None) -> list[Due]:
    """Return the reviews due on `day` or earlier, the longest due first."""
    return [one for one in reviews(answers, known) if one.day <= day]


def review_today(
    answers: Answers, day: date, known: Collection[str] | None = None, *, of: str = ""
) -> tuple[list[Due], str]:
    """Return what is due on `day`, the longest due first, and a sentence that says so.

    `of` tells what `known` was narrowed to. The notebook and the terminal both ask this.

    >>> review_today({}, date(2026, 3, 1))
    ([], 'Nothing is due today.')
    """
    due = due_today(answers, day, known)
    if due:
        return due, f"{len(due)} due, the longest due first. A right answer moves it on."
    later = reviews(answers, known)
    when = f" The next one is due on {later[0].day.isoformat()}." if later else ""
    return [], f"{' '.join(filter(None, ('Nothing is due today', of)))}.{when}"


def among(topic: str | None, level: int | None) -> str:
    """Return words for what a review is narrowed to.

    >>> among("memory", 2), among(None, None)
    ('in memory, level 2', '')
    """
    of_level = f"level {level}" if level else ""
    if topic is None:
        return f"of {of_level}" if of_level else ""
    return ", ".join(filter(None, (f"in {topic}", of_level)))


@dataclass(frozen=True)
class TopicScore:
    """The last answer to each question of a topic: right of answered, and what to read again."""

    topic: str
    right: int
    answered: int
    in_bank: int
    reread: tuple[str, ...]


def score_by_topic(answers: Answers, questions: Sequence[Question]) -> list[TopicScore]:
    """Return a score for each topic of `questions`, in their order.

    The chapters to reread are those of the misses, the one with most misses first.
    """
    last = {item: bool(kept[-1].get("right")) for item, kept in answers.items() if kept}
    scores = []
    for topic in dict.fromkeys(question.topic for question in questions):
        of = [question for question in questions if question.topic == topic]
        given = [question for question in of if question.id in last]
        missed = [question.chapter for question in given if not last[question.id]]
        again = sorted(set(missed), key=lambda chapter: (-missed.count(chapter), chapter))
        scores.append(
            TopicScore(topic, len(given) - len(missed), len(given), len(of), tuple(again))
        )
    return scores


def own_mark(made: Collection[int], total: int) -> tuple[str, bool]:
    """Return (verdict, right) of a spoken answer that made the points `made`, from 1 to `total`.

    It counts as right with all points but one, and never without the first: the scope.

    >>> own_mark({1, 2, 4, 5}, 5), own_mark({2, 3, 4, 5}, 5)
    (('4 of 5', True), ('4 of 5', False))
    """
    points = {point for point in made if 1 <= point <= total}
    return f"{len(points)} of {total}", 1 in points and len(points) >= total - 1


def spoken_answer(question: OpenQuestion) -> str:
    """Return both spoken answers and the rubric of an open question, as paragraphs."""
    points = "\n".join(f"{number}. {point}" for number, point in enumerate(question.rubric, 1))
    said = f"In 30 seconds: {question.in_30_seconds}\n\nIn two minutes: {question.in_two_minutes}"
    return f"{said}\n\nThe points:\n{points}"


def _marked(kept: Sequence[Mapping[str, Any]]) -> list[tuple[date, bool]]:
    """Return (day, right) of each answer; an unmarked one counts only while it is the last."""
    found = []
    for place, answer in enumerate(kept):
        if answer.get("verdict") == NOT_MARKED and place + 1 < len(kept):
            continue
        try:
            day = datetime.fromisoformat(str(answer.get("when"))).date()
        except ValueError:  # a file that somebody edited by hand
            continue
        found.append((day, bool(answer.get("right"))))
    return found

"""The report of an interview: the score by topic, and each question with its worked answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kvlab.course.html import fold
from kvlab.course.practice import TopicScore
from kvlab.figures.cards import paragraphs
from kvlab.figures.score_card import score_card
from kvlab.figures.svg import Picture
from kvlab.figures.tables import sheet_html


@dataclass(frozen=True)
class Outcome:
    """One question of the report: its words, whether it was right, what to say, and the answer."""

    question: str
    right: bool | None
    remark: str
    answer: str


def interview_report(scores: Sequence[TopicScore], outcomes: Sequence[Outcome]) -> Picture:
    """Return the score by topic and, folded, each question's worked answer.

    >>> interview_report([], [Outcome("How many?", None, "", "8.")]).label
    'The interview: 0 of 1 right.'
    """
    right = sum(bool(outcome.right) for outcome in outcomes)
    label = f"The interview: {right} of {len(outcomes)} right."
    body = f'<div style="font-weight:600;margin-bottom:8px">{label}</div>'
    body += "".join(_one(number, outcome) for number, outcome in enumerate(outcomes, 1))
    sheet = sheet_html(body, label=label, kind="interview-report")
    card = str(score_card(scores, title="This interview by topic")) if scores else ""
    return Picture(card + str(sheet), label=label)


def _one(number: int, outcome: Outcome) -> str:
    """Draw one question: a sign and a word, what to say to it, and the answer folded."""
    verdict = "\u25cb no answer" if outcome.right is None else ""
    verdict = verdict or ("\u2713 right" if outcome.right else "\u2717 not right")
    head = f'<div style="margin-top:10px"><strong>{number}. {verdict}.</strong></div>'
    remark = f'<div style="opacity:.85">{escape(outcome.remark)}</div>' if outcome.remark else ""
    return head + paragraphs(outcome.question) + remark + fold("Answer", paragraphs(outcome.answer))

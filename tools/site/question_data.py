"""A question as data for the page that grades it: texts, answers and what to say to each slip.

Answers are worked out here, by the functions that the bank names; the page only compares.
"""

from typing import Any

from kvlab.course.asked import Asked
from kvlab.course.calls import evaluate
from kvlab.course.question_html import how_to_answer
from kvlab.course.questions import (
    ChoiceQuestion,
    NumericQuestion,
    OrderQuestion,
    Question,
    ShapeQuestion,
)
from tools.site.prose import words_of

FRESH_TIMES = 4
"""How many times a question with fresh numbers can be asked on a page."""


def variants(question: Question, seed: int) -> list[Asked]:
    """Return the askings of a question that its page holds, each with a text of its own."""
    if not isinstance(question, NumericQuestion | ShapeQuestion):
        return [Asked(question, seed)]
    made: dict[str, Asked] = {}
    for further in range(4 * FRESH_TIMES):
        asked = Asked(question, seed + further)
        made.setdefault(asked.text, asked)
        if len(made) == FRESH_TIMES:
            break
    return list(made.values())


def asking(asked: Asked) -> dict[str, Any]:
    """Return one asking as plain data: its text, what is compared, and the worked answer."""
    question = asked.question
    data: dict[str, Any] = {"text": words_of(asked.text), "solution": words_of(asked.solution())}
    if isinstance(question, NumericQuestion):
        data["target"] = target_data(asked, question)
    elif isinstance(question, ShapeQuestion):
        data["shape"] = [int(n) for n in evaluate(question.fresh.answer, asked.values)]
        data["axes"] = list(question.axes)
        data["wrong"] = [
            [way.id, [int(n) for n in evaluate(way.value, asked.values)], way.feedback]
            for way in question.fresh.wrong_ways
        ]
    elif isinstance(question, ChoiceQuestion):
        by_text = {option.text: option for option in question.options}
        shown = [by_text[text] for text in asked.options]
        data["options"] = [[option.right, option.why] for option in shown]
    elif isinstance(question, OrderQuestion):
        data["order"] = [question.steps.index(step) for step in asked.options]
        data["whys"] = list(question.whys)
    return data


def target_data(asked: Asked, question: NumericQuestion) -> dict[str, Any]:
    """Return what a number is compared with; numbers are texts, so that no digit is lost."""
    values, fresh = asked.values, question.fresh
    return {
        "value": str(evaluate(fresh.answer, values)),
        "unit": question.unit,
        "exact": question.exact,
        "tolerance": str(question.tolerance),
        "words": list(question.words),
        "per": question.per,
        "misconceptions": [
            [way.id, str(evaluate(way.value, values)), way.feedback] for way in fresh.wrong_ways
        ],
    }


def question_data(question: Question, seed: int) -> dict[str, Any]:
    """Return a question with all its askings."""
    asked = variants(question, seed)
    return {
        "kind": question.kind,
        "how": how_to_answer(asked[0]),
        "askings": [asking(one) for one in asked],
    }

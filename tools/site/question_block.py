"""Questions on a page: a form that a script grades, and the worked answer folded for everybody."""

import json
from collections.abc import Sequence
from typing import Any

from kvlab.course.asked import Asked
from kvlab.course.bank import find_question
from kvlab.course.picked import LETTERS
from kvlab.course.question_html import how_to_answer
from kvlab.course.questions import OpenQuestion, Question
from tools.site.markup import tag, text
from tools.site.prose import words_of
from tools.site.question_data import question_data, variants

_PICK = {"choice": "Pick one.", "find-error": "Pick the faulty line."}
_ORDER = "Bring the steps into order."


def question_list(ids: Sequence[str], *, seed: int) -> str:
    """Return questions of the bank, numbered."""
    blocks = [
        question_block(find_question(name), seed=seed, number=number)
        for number, name in enumerate(ids, 1)
    ]
    return tag("div", "".join(blocks), class_="questions")


def question_block(question: Question, *, seed: int, number: int, taught_at: str = "") -> str:
    """Return one question as a form with its data; `taught_at` is the address that teaches it."""
    first = variants(question, seed)[0]
    name = f"q-{question.id}"
    lead = tag("span", f"{number}", class_="number")
    asked = tag("p", lead + tag("span", words_of(first.text), class_="js-text"), class_="asked")
    body = asked + _form(first, name) + tag("div", "", class_="feedback", role="status")
    body += _answer(first)
    if taught_at:
        link = tag("a", "The section that teaches it", href=taught_at)
        body += tag("p", link, class_="where")
    held = json.dumps(question_data(question, seed), ensure_ascii=False, separators=(",", ":"))
    body += tag("script", held.replace("</", "<\\/"), type="application/json")
    return tag("section", body, class_="question", id=name, data_kind=question.kind,
               data_id=question.id, aria_label=f"Question {number}")  # fmt: skip


def _form(asked: Asked, name: str) -> str:
    """Return the controls of a question, by its kind."""
    question, how = asked.question, how_to_answer(asked)
    again = tag("button", "fresh numbers", type="button", class_="js-again", hidden=True)
    check = tag("button", "check", class_="main")
    if isinstance(question, OpenQuestion):
        return ""
    if question.kind == "order":
        return tag("form", tag("p", _ORDER, class_="how") + _steps(asked) + check, class_="js")
    if asked.options:
        legend = tag("legend", _PICK[question.kind])
        rows = [_option(name, i, option) for i, option in enumerate(asked.options)]
        return tag("form", tag("fieldset", legend + "".join(rows)) + check, class_="js")
    label = tag("label", text(how), for_=f"{name}-answer")
    entry = tag("input", type="text", id=f"{name}-answer", autocomplete="off", spellcheck="false")
    return tag("form", label + entry + check + again, class_="js")


def _option(name: str, index: int, option: str) -> str:
    radio = tag("input", type="radio", name=name, value=LETTERS[index], id=f"{name}-{index}")
    words = tag("span", LETTERS[index], class_="letter") + tag("span", words_of(option))
    return tag("label", radio + words, for_=f"{name}-{index}", class_="option")


def _steps(asked: Asked) -> str:
    """Return the steps to put into order, each with two buttons that move it."""
    rows = []
    for index, step in enumerate(asked.options):
        letter = LETTERS[index]
        words = tag("span", letter, class_="letter") + tag("span", words_of(step), class_="words")
        moves = "".join(
            tag("button", sign, type="button", class_=f"js-{way}", aria_label=f"{letter} {way}")
            for sign, way in (("\u2191", "up"), ("\u2193", "down"))
        )
        rows.append(tag("li", words + tag("span", moves, class_="moves"), data_place=index))
    return tag("ol", "".join(rows), class_="steps")


def _answer(asked: Asked) -> str:
    """Return the worked answer, folded; that of an open question is its rubric."""
    question = asked.question
    if isinstance(question, OpenQuestion):
        return tag("details", tag("summary", "Show the rubric") + _rubric(question))
    inner = tag("div", tag("p", words_of(asked.solution()), class_="js-solution") + _whys(asked))
    return tag("details", tag("summary", "Show the answer") + inner, class_="js-shows")


def _whys(asked: Asked) -> str:
    """Return why each wrong option is wrong."""
    options: Any = getattr(asked.question, "options", ())
    by_text = {option.text: option for option in options}
    rows = [
        tag("li", tag("span", LETTERS[i], class_="letter") + tag("span", words_of(by_text[o].why)))
        for i, o in enumerate(asked.options)
        if o in by_text and not by_text[o].right
    ]
    return tag("ul", "".join(rows), class_="whys") if rows else ""


def _rubric(question: OpenQuestion) -> str:
    """Return the points to tick, and both spoken answers."""
    rows = "".join(
        tag("li", tag("label", tag("input", type="checkbox") + tag("span", words_of(point))))
        for point in question.rubric
    )
    spoken = ""
    for name, words in (("30 seconds", question.in_30_seconds),
                        ("two minutes", question.in_two_minutes)):  # fmt: skip
        spoken += tag("p", tag("strong", f"In {name}.") + " " + words_of(words))
    said = tag("p", "Tick the points you made. The first is the scope: say it before any number.")
    return tag("div", said + tag("ol", rows, class_="rubric") + spoken)

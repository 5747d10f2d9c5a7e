"""Questions as static HTML, for a page without a kernel: the answer is folded, or left out."""

from collections.abc import Sequence

from kvlab.course.asked import Asked
from kvlab.course.html import box, fold, words
from kvlab.course.picked import LETTERS
from kvlab.course.questions import NumericQuestion, OpenQuestion, OrderQuestion, ShapeQuestion


def how_to_answer(asked: Asked) -> str:
    """Return one line that says in which form the answer is taken.

    >>> from kvlab.course.bank import find_question
    >>> how_to_answer(Asked(find_question("02-cached-forwards")))
    'A whole number.'
    """
    question = asked.question
    if isinstance(question, NumericQuestion):
        if question.exact:
            return "A whole number."
        if question.unit in {"", "x"}:
            return "A number, to three digits."
        if question.unit == "%":
            return "A number in percent, to three digits."
        return "A number with its unit, to three digits."
    if isinstance(question, ShapeQuestion):
        return f"A shape ({', '.join(question.axes)}), such as (2, 3)."
    if isinstance(question, OrderQuestion):
        return "The letters in order."
    if isinstance(question, OpenQuestion):
        return "Say it aloud, then mark yourself."
    return "One letter." if question.kind == "choice" else "The letter of the faulty line."


def render(asked: Asked, *, number: int | None = None, answer: bool = False) -> str:
    """Return one question as HTML; with `answer` the worked answer is there, folded.

    Without it nothing in the HTML tells the answer.
    """
    lead = f"{number}." if number is not None else "Question."
    inner = words(asked.text)
    if asked.options:
        items = "".join(
            f"<li style='list-style:none'>{letter}. {words(option)}</li>"
            for letter, option in zip(LETTERS, asked.options, strict=False)
        )
        inner += f"<ul style='margin:4px 0 4px 1em;padding:0'>{items}</ul>"
    inner += f"<div style='opacity:.75'>{words(how_to_answer(asked))}</div>"
    if answer:
        inner += fold("Show the answer", box("solution", "Answer.", words(asked.solution())))
    return box("open", lead, inner)


def render_all(questions: Sequence[Asked], *, answers: bool = False) -> str:
    """Return several questions as HTML, numbered."""
    return "".join(render(asked, number=i, answer=answers) for i, asked in enumerate(questions, 1))

"""Sit `kvlab quiz` in a test: right lines, wrong lines, all that answer a sitting, what is kept."""

import io
import sys

import pytest

from kvlab import cli
from kvlab.course.asked import Asked
from kvlab.course.bank import find_question
from kvlab.course.calls import evaluate
from kvlab.course.progress import Progress


def right_line(asked: Asked) -> str:
    """What a learner types who knows the answer."""
    question = asked.question
    if question.kind == "numeric":
        return repr(evaluate(question.fresh.answer, asked.values)) + (
            f" {question.unit}" if question.unit not in ("", "x", "%") else question.unit
        )
    if question.kind == "shape":
        return str(tuple(evaluate(question.fresh.answer, asked.values)))
    if question.kind == "order":
        return " ".join("ABCDEFGHIJ"[asked.options.index(step)] for step in question.steps)
    for letter in "ABCDEFGHIJ"[: len(asked.options)]:
        if asked.grade(letter).right:
            return letter
    raise AssertionError(question.id)


def wrong_line(asked: Asked) -> str:
    """A readable answer that is not right."""
    letters = "ABCDEFGHIJ"[: len(asked.options)]
    tries = [*letters, letters, letters[::-1], "7", "7 GB", "(1, 2)", "(1, 2, 3)", "(1, 2, 3, 4)"]
    return next(t for t in tries if (g := asked.grade(t)).answered and not g.right)


def answers_of(asked: list[Asked]) -> tuple[list[str], list[list[str]]]:
    """Lines that answer every question, and the ids in the file after 0, 1, 2, ... lines."""
    lines: list[str] = []
    after: list[list[str]] = [[]]
    for one in asked:
        mine = ["said", "1-3"] if one.question.kind == "open" else [right_line(one)]
        lines += mine
        after += [after[-1]] * (len(mine) - 1) + [[*after[-1], one.question.id]]
    return lines, after


def play(monkeypatch: pytest.MonkeyPatch, lines: list[str], *arguments: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(line + "\n" for line in lines)))
    return cli.run(["quiz", *arguments])


def play_one(monkeypatch: pytest.MonkeyPatch, question_id: str, lines: list[str]) -> int:
    """Ask that question alone, with seed 5."""
    question = find_question(question_id)
    monkeypatch.setattr("kvlab.course.bank.select_questions", lambda **_: (question,))
    return play(monkeypatch, lines, "--count", "1", "--seed", "5")


def kept(question_id: str) -> list[bool]:
    return [answer["right"] for answer in Progress().answers().get(question_id, [])]

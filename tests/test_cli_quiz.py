"""`kvlab quiz`: graded as the course grades, kept at once, stopped at any line without loss."""

import io
import sys
from pathlib import Path

import pytest

from kvlab import cli
from kvlab.course.asked import Asked, ask
from kvlab.course.bank import find_question, select_questions
from kvlab.course.calls import evaluate
from kvlab.course.progress import Progress


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))


def play(monkeypatch: pytest.MonkeyPatch, lines: list[str], *arguments: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(line + "\n" for line in lines)))
    return cli.run(["quiz", *arguments])


def right_line(asked: Asked) -> str:
    """What a learner types who knows the answer."""
    question = asked.question
    if question.kind == "numeric":
        return repr(evaluate(question.fresh.answer, asked.values)) + (
            f" {question.unit}" if question.unit not in ("", "x", "%") else question.unit
        )
    for letter in "ABCDEFGHIJ"[: len(asked.options)]:
        if asked.grade(letter).right:
            return letter
    raise AssertionError(question.id)


def test_right_answers_are_counted_and_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = [q for q in select_questions(topic="memory") if q.kind in ("numeric", "choice")]
    asked = ask(select_questions(topic="memory"), seed=3, count=4)
    skipped = {"open": ["", ""]}  # Enter to see the points, Enter for none
    lines = [
        line
        for one in asked
        for line in (
            [right_line(one)] if one.question in pool else skipped.get(one.question.kind, ["s"])
        )
    ]
    known = [one for one in asked if one.question in pool]
    assert known
    assert play(monkeypatch, lines, "--topic", "memory", "--count", "4", "--seed", "3") == 0
    out = capsys.readouterr().out
    assert f"{len(known)} of 4 right" in out and "seed 3" in out
    assert all(Progress().answers()[one.question.id][-1]["right"] for one in known)


def test_the_same_seed_asks_the_same_questions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for _ in range(2):
        play(monkeypatch, ["s"] * 5, "--count", "5", "--seed", "11", "--level", "1")
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_a_wrong_answer_gets_its_feedback_and_another_try(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = find_question("07-date-on-top")
    monkeypatch.setattr("kvlab.course.bank.select_questions", lambda **_: (question,))
    asked = Asked(question, 5)
    wrong = next(x for x in "ABCD" if not asked.grade(x).right)
    assert play(monkeypatch, [wrong, right_line(asked)], "--count", "1", "--seed", "5") == 0
    assert "Try again" in capsys.readouterr().out
    assert [a["right"] for a in Progress().answers()[question.id]] == [False, True]


def test_stopping_at_any_line_keeps_what_was_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ask(select_questions(topic="prefix"), seed=1, count=3)
    lines = ["?" if one.question.kind != "open" else "" for one in asked]
    for stop in range(3):
        Progress().delete()
        assert (
            play(monkeypatch, lines[:stop], "--topic", "prefix", "--count", "3", "--seed", "1") == 0
        )
        closed = [one for one in asked[:stop] if one.question.kind != "open"]
        assert len(Progress().answers()) == len(closed)
        assert "Traceback" not in capsys.readouterr().err


def test_open_questions_are_marked_by_the_learner_and_need_the_scope(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = find_question("07-when-to-share")
    monkeypatch.setattr("kvlab.course.bank.select_questions", lambda **_: (question,))
    assert play(monkeypatch, ["my answer", "2 3 4 5"], "--count", "1", "--seed", "0") == 0
    assert "first point is the scope" in capsys.readouterr().out
    assert play(monkeypatch, ["my answer", "1,2,3,4"], "--count", "1", "--seed", "0") == 0
    assert [a["right"] for a in Progress().answers()[question.id]] == [False, True]


def test_review_asks_what_was_missed_and_says_when_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, [], "--review") == 2
    assert "review=True" in capsys.readouterr().err
    Progress().record("07-date-on-top", "wrong", right=False)
    assert play(monkeypatch, ["q"], "--review") == 0
    assert "1 questions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topic", "cooking"], "topic='cooking'"),
        (["--count", "0"], "count=0"),
        (["--level", "7"], "level=7"),
        (["--seed", "-1"], "seed=-1"),
    ],
)
def test_bad_input_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    assert play(monkeypatch, [], *arguments) == 2
    assert said in capsys.readouterr().err

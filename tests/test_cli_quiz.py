"""`kvlab quiz`: graded as the course grades, saved at once, stopped at any line without loss."""

from datetime import timedelta
from pathlib import Path

import pytest
from quiz_lines import answers_of, kept, play, play_one, right_line, wrong_line

from kvlab.course import practice
from kvlab.course.asked import Asked, ask
from kvlab.course.bank import find_question, select_questions
from kvlab.course.progress import Progress

CHOICE = "07-date-on-top"


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVLAB_PROGRESS", str(tmp_path / "progress.json"))


def test_right_answers_are_counted_saved_and_told_apart_from_skipped_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ask(select_questions(topic="memory"), seed=3, count=6)
    known = [one for one in asked if one.question.kind != "open"][:4]
    lines = [right_line(one) if one in known else "s" for one in asked]
    assert play(monkeypatch, lines, "--topic", "memory", "--count", "6", "--seed", "3") == 0
    out = capsys.readouterr().out
    assert "4 of 4 right at the first try; 2 skipped" in out and "6 questions, seed 3" in out
    assert "memory          4 of 4" in out and "read again" not in out
    assert "kept" not in out
    assert {name: kept(name) for name in Progress().answers()} == {
        one.question.id: [True] for one in known
    }


def test_the_same_seed_asks_the_same_questions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for _ in range(2):
        play(monkeypatch, ["s"] * 5, "--count", "5", "--seed", "11", "--level", "1")
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert "5 skipped" in outputs[0] and "right" not in outputs[0].rpartition("> ")[2]


def test_a_miss_that_is_right_at_once_afterwards_stays_under_review(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked(find_question(CHOICE), 5)
    assert play_one(monkeypatch, CHOICE, [wrong_line(asked), right_line(asked)]) == 0
    out = capsys.readouterr().out
    assert "Try again" in out and "1 question, seed 5" in out
    assert "0 of 1 right at the first try, 1 more at a later one" in out
    assert "07 Prefix sharing" in out and "--review" in out
    assert kept(CHOICE) == [False, True]
    (due,) = practice.reviews(Progress().answers())
    assert (due.question_id, due.day) == (CHOICE, practice.today() + timedelta(1))


def test_review_asks_what_is_due_and_says_plainly_when_nothing_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, [], "--review") == 0
    assert capsys.readouterr() == ("Nothing is due today.\n", "")
    Progress().record(CHOICE, "wrong", right=False)
    tomorrow = practice.today() + timedelta(1)
    assert play(monkeypatch, [], "--review") == 0
    said = f"Nothing is due today. The next one is due on {tomorrow}.\n"
    assert capsys.readouterr().out == said
    monkeypatch.setattr(practice, "today", lambda: tomorrow)
    for narrowed, words in ((("--topic", "gqa"), "in gqa"), (("--level", "3"), "of level 3")):
        assert play(monkeypatch, [], "--review", *narrowed) == 0
        assert capsys.readouterr().out == f"Nothing is due today {words}.\n"
    assert play(monkeypatch, ["q"], "--review", "--topic", "prefix") == 0
    out = capsys.readouterr().out
    assert "1 due, the longest due first" in out and "1 question, seed" in out
    assert "stopped; nothing was answered" in out


def test_a_file_that_was_set_aside_is_named_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "progress.json").write_text("{", encoding="utf-8")
    assert play_one(monkeypatch, CHOICE, [right_line(Asked(find_question(CHOICE), 5))]) == 0
    assert "kept as progress.json.1.corrupt" in capsys.readouterr().err
    assert kept(CHOICE) == [True]


def test_an_input_that_ends_at_any_line_leaves_what_was_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ask(select_questions(topic="prefix"), seed=1, count=4)
    lines, after = answers_of(asked)
    for stop in range(len(lines) + 1):
        Progress().delete()
        arguments = ("--topic", "prefix", "--count", "4", "--seed", "1")
        assert play(monkeypatch, lines[:stop], *arguments) == 0
        assert list(Progress().answers()) == after[stop]
        out, err = capsys.readouterr()
        assert err == ""
        number = len(after[stop])
        words = f"{number} answer{'' if number == 1 else 's'} kept" if number else "nothing was"
        assert (words in out) is (stop < len(lines))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topic", "cooking"], "topic='cooking'"),
        (["--count", "0"], "count=0"),
        (["--level", "7"], "level=7"),
        (["--seed", "-1"], "seed=-1"),
        (["--review", "--topic", "cooking"], "topic='cooking'"),
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

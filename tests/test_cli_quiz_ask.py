"""One question of `kvlab quiz`: what counts as an answer, what is kept, and what is said of it."""

from pathlib import Path

import pytest
from quiz_lines import kept, play_one, right_line, wrong_line

from kvlab.course.asked import Asked
from kvlab.course.bank import find_question
from kvlab.course.calls import evaluate

OPEN, CHOICE = "07-when-to-share", "07-date-on-top"


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVLAB_PROGRESS", str(tmp_path / "progress.json"))


def test_a_wrong_answer_that_is_left_counts_as_wrong_not_as_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = wrong_line(Asked(find_question(CHOICE), 5))
    for ending in (["s"], ["?"], ["q"], []):
        assert play_one(monkeypatch, CHOICE, [wrong, *ending]) == 0
        out = capsys.readouterr().out
        assert "0 of 1 right at the first try\n" in out and "skipped" not in out


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["s"], []),
        (["?"], [False]),
        (["my answer", "s"], []),
        (["", "all"], [True]),
        (["", "1-5"], [True]),
        (["", "1,3"], [False]),
        (["", "a c"], [False]),
        (["", "a, b, c, d"], [True]),
        (["", "2 3 4 5"], [False]),
        (["", "1-4"], [True]),
        (["", ""], [False]),
        (["", "?", "7", "everything", "1 2 4 5"], [True]),
        ([""], []),
        (["", "q"], []),
    ],
)
def test_an_open_question_is_marked_by_its_points_and_by_nothing_else(
    monkeypatch: pytest.MonkeyPatch, lines: list[str], expected: list[bool]
) -> None:
    assert len(find_question(OPEN).rubric) == 5
    assert play_one(monkeypatch, OPEN, lines) == 0
    assert kept(OPEN) == expected


def test_the_rubric_is_not_shown_before_the_answer_was_spoken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = find_question(OPEN).rubric[0][:30]
    for lines, seen in ((["s"], False), ([], False), (["said"], True), (["?"], True)):
        play_one(monkeypatch, OPEN, lines)
        assert (first in capsys.readouterr().out) is seen
    play_one(monkeypatch, OPEN, ["said", "2 3"])
    assert "The first point is the scope" in capsys.readouterr().out


def test_an_answer_of_two_meanings_is_asked_again_and_not_kept_as_a_miss(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "03-bytes-per-token"
    exact = evaluate(find_question(name).fresh.answer, Asked(find_question(name), 5).values)
    dotted = f"{int(exact):,}".replace(",", ".")
    assert play_one(monkeypatch, name, [dotted, f"{int(exact):,} bytes"]) == 0
    assert "without separators" in capsys.readouterr().out
    assert kept(name) == [True]


def test_nothing_is_said_to_be_kept_that_was_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("KVLAB_PROGRESS", str(tmp_path / "file" / "progress.json"))
    asked = Asked(find_question(CHOICE), 5)
    assert play_one(monkeypatch, CHOICE, [wrong_line(asked), "q"]) == 0
    out, err = capsys.readouterr()
    assert "stopped; no answer is kept" in out
    assert err.count("Your progress was not saved: ") == 1
    assert play_one(monkeypatch, CHOICE, [right_line(asked)]) == 0
    out, err = capsys.readouterr()
    assert "no answer is kept" in out and "not saved" in err

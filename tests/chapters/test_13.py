"""Every number and name in the prose of chapter 13, checked against the functions."""

import json
from pathlib import Path

import pytest

from kvlab.course.chapters_map import find_chapter, find_path
from kvlab.course.diagnostic import ASKED_ABOUT
from kvlab.course.exercises import find_exercise
from kvlab.course.practice import own_mark

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "chapters" / "src" / "13_interview.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))
START = (ROOT / "chapters" / "src" / "00_start_here.py").read_text(encoding="utf-8")


def test_it_asks_and_answers_the_question_of_the_map() -> None:
    question = find_chapter("13").question
    assert f"**The question.** {question}" in PROSE
    assert "**The answer.** You could, if" in PROSE
    assert f"**Core** {find_chapter('13').core_minutes} minutes" in PROSE


def test_the_diagnostic_has_ten_questions_and_chapter_00_leads_to_it() -> None:
    assert len(ASKED_ABOUT) == 10
    assert "Ten questions, one for each chapter of the interview path" in PROSE
    assert "(13_interview.ipynb#diagnostic)" in START and '<a id="diagnostic"></a>' in TEXT
    assert f"{find_path('interview').total_minutes} minutes and ends in a mock interview" in START


def test_the_interview_has_the_minutes_of_the_path() -> None:
    assert find_path("interview").minutes["13"] == 30
    assert "mock_interview(minutes=30)" in TEXT and "**Core · 30 minutes**" in PROSE


def test_the_stored_days_are_those_of_the_rule() -> None:
    stored = json.loads((ROOT / "chapters" / "13_interview.ipynb").read_text(encoding="utf-8"))
    outputs = json.dumps([cell.get("outputs", []) for cell in stored["cells"]])
    assert "right twice: missed on day 0, right on day 1, right on day 4, back on day 11" in outputs
    assert "the same day in 1,000 histories" in outputs
    assert "taken: False; the interview is done" in outputs


def test_the_scope_is_the_one_point_that_cannot_be_missed() -> None:
    assert not own_mark({2, 3, 4, 5}, 5)[1] and own_mark({1, 2, 3, 4}, 5)[1]
    assert "makes points 2, 3, 4 and 5" in PROSE


def test_nothing_saved_in_the_page_holds_an_answer_of_a_learner() -> None:
    stored = (ROOT / "chapters" / "13_interview.ipynb").read_text(encoding="utf-8")
    assert "Score by topic: nothing answered yet." in stored


@pytest.mark.parametrize(
    ("answer", "slip"),
    [
        ("37 requests", ""),
        (40, "gib-for-gb"),
        (4, "eight-heads"),
        (74, "factor-two"),
        (298, "one-rank-of-eight"),
        (43, "share-forgotten"),
    ],
)
def test_a_slip_in_the_case_is_named(answer: object, slip: str) -> None:
    grade = find_exercise("13-b").grade(answer)
    assert (grade.misconception, grade.right) == (slip, not slip)


@pytest.mark.parametrize(
    ("function", "slip"),
    [
        (lambda made, total: len(set(made)) >= total - 1, "scope-forgotten"),
        (lambda made, total: 1 in made and len(set(made)) == total, "all-points"),
        (lambda made, total: 1 in made and len(made) >= total - 1, "counted-twice"),
    ],
)
def test_a_slip_in_the_marking_is_named(function, slip: str) -> None:  # type: ignore[no-untyped-def]
    assert find_exercise("13-a").grade(function).misconception == slip

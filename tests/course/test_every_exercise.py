"""What holds for every exercise alike: its stub, its worked solution, its hints, strange answers.

Right answers and slips, by name, lie with each chapter's own tests.
"""

from typing import Any

import numpy as np
import pytest
from exercise_answers import name_of

from kvlab.course import exercises as ex
from kvlab.course.chapters_map import CHAPTERS
from kvlab.course.grading import Verdict
from kvlab.errors import InvalidArgument


def of_chapter(number: str) -> tuple[ex.Exercise, ...]:
    """The exercises of a chapter; none where it has none."""
    try:
        return ex.exercises_of(number)
    except InvalidArgument:
        return ()


EXERCISES = [exercise for chapter in CHAPTERS for exercise in of_chapter(chapter.number)]
STRANGE = [
    None, ..., "", " ", "nan", "n/a", float("nan"), [], {}, [None], object(), "x" * 10_000, "<b>",
    lambda: 1, lambda *a: a, -3, True,
]  # fmt: skip
all_exercises = pytest.mark.parametrize("exercise", EXERCISES, ids=[e.id for e in EXERCISES])


def names_at_hand(exercise: ex.Exercise) -> dict[str, Any]:
    """What a learner's notebook holds when the exercise is reached."""
    space: dict[str, Any] = {"np": np}
    if "loaded" in exercise.solution:  # it measures a real model
        from kvlab.model.decode import generate
        from kvlab.model.load import load_model
        from kvlab.model.sample_text import sample_ids

        space |= {"generate": generate, "sample_ids": sample_ids, "loaded": load_model("tiny")}
    return space


def test_every_chapter_but_the_optional_one_has_two_exercises_or_more() -> None:
    for chapter in CHAPTERS:
        if not chapter.optional:
            assert len(of_chapter(chapter.number)) >= 2, chapter.number
    assert len({exercise.id for exercise in EXERCISES}) == len(EXERCISES)


@all_exercises
def test_the_untouched_stub_is_not_answered_yet(exercise: ex.Exercise) -> None:
    space: dict[str, Any] = {}
    exec(exercise.stub, space)
    result = ex.check(exercise.id, space[name_of(exercise)])
    assert result.grade.verdict is Verdict.NOT_ANSWERED and not result.passed
    assert repr(result).startswith(f"{exercise.id}: Not answered yet")
    assert "Not answered yet" in result._repr_html_()


@all_exercises
def test_the_worked_solution_passes_and_keeps_the_stub_s_name(exercise: ex.Exercise) -> None:
    space = names_at_hand(exercise)
    exec(exercise.solution, space)
    result = ex.check(exercise.id, space[name_of(exercise)])
    assert result.passed and exercise.why in result.text
    head = exercise.stub.split("\n")[0]
    if head.startswith("def"):
        assert head in exercise.solution and head[4:-1] in exercise.statement
    shown = ex.solution(exercise.id)
    assert "<details>" in shown._repr_html_() and exercise.solution not in repr(shown)


@all_exercises
def test_anything_that_is_no_answer_gets_a_message_and_never_passes(exercise: ex.Exercise) -> None:
    for answer in STRANGE:
        result = ex.check(exercise.id, answer)
        assert not result.passed and 0 < len(result.text) < 300
        assert exercise.why not in result.text


@all_exercises
def test_hints_come_in_steps_and_none_of_them_is_the_solution(exercise: ex.Exercise) -> None:
    assert len(exercise.hints) >= 2
    assert exercise.solution.strip() not in " ".join(exercise.hints)

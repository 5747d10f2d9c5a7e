"""The exercises of chapter 03: right ways pass, each typical slip gets its own sentence."""

import contextlib
import io

import pytest

from kvlab.course import exercises as ex
from kvlab.course.checks_03 import cache_bytes
from kvlab.course.grading import Verdict
from kvlab.course.published_table import PRINTED_MIB, STATEMENTS, corrections, page_mib, size

ALL = ex.exercises_of("03")
RIGHT = {
    "03-a": [cache_bytes, lambda a, b, c, d, e, f: 2 * a * b * c * d * e * f],
    "03-b": ["4.5 GiB", 4.5, "4.83 GB", "4608 MiB"],
    "03-c": [2, 2.0, "2", "2 times"],
    "03-d": ["A B D E F H J", "abdefhj", ["A", "B", "D", "E", "F", "H", "J"], set("JHFEDBA")],
}
WRONG = {
    "03-a": {
        "factor-2": lambda a, b, c, d, e, f: a * b * c * d * e * f,
        "factor-2-twice": lambda a, b, c, d, e, f: 4 * a * b * c * d * e * f,
        "one-layer": lambda a, b, c, d, e, f: 2 * b * c * d * e * f,
        "one-user": lambda a, b, c, d, e, f: 2 * a * b * c * d * e,
        "one-token": lambda a, b, c, d, e, f: 2 * a * b * c * d * f,
        "bits": lambda a, b, c, d, e, f: 16 * a * b * c * d * e * f,
        "elements": lambda a, b, c, d, e, f: 2 * a * b * c * e * f,
    },
    "03-b": {
        "query-heads": "18 GiB",
        "factor-2": 2.25,
        "factor-2-twice": 9,
        "hidden-over-heads": "2.8125 GiB",
        "weight-dtype": "1.125 GiB",
        "one-layer": "0.125 GiB",
        "full-context": "5.625 GiB",
        "gb-for-gib": "4.83 GiB",
    },
    "03-c": {"upside-down": 0.5, "twice-lost": 4, "none": 1, "unit-only": 1.0486},
    "03-d": {
        "extra-C": "A B C D E F H J",
        "extra-G": "ABDEFGHJ",
        "extra-I": "A, B, D, E, F, H, I, J",
        "missed": "A B",
    },
}
IDS = [exercise.id for exercise in ALL]


def stub_of(exercise: ex.Exercise) -> object:
    space: dict[str, object] = {}
    exec(exercise.stub, space)
    return next(value for name, value in space.items() if name != "__builtins__")


@pytest.mark.parametrize("exercise", ALL, ids=IDS)
def test_the_untouched_stub_is_not_answered_yet(exercise: ex.Exercise) -> None:
    assert ex.check(exercise.id, stub_of(exercise)).grade.verdict is Verdict.NOT_ANSWERED


@pytest.mark.parametrize("exercise", ALL, ids=IDS)
def test_right_answers_pass_with_the_reason(exercise: ex.Exercise) -> None:
    for answer in RIGHT[exercise.id]:
        result = ex.check(exercise.id, answer)
        assert result.passed, result
        assert exercise.why in result.text


@pytest.mark.parametrize("exercise", ALL, ids=IDS)
def test_typical_wrong_answers_get_their_own_feedback(exercise: ex.Exercise) -> None:
    assert len(WRONG[exercise.id]) >= 3
    for name, answer in WRONG[exercise.id].items():
        result = ex.check(exercise.id, answer)
        assert not result.passed
        assert result.grade.misconception == name, result
        assert exercise.why not in result.text


@pytest.mark.parametrize("exercise", ALL, ids=IDS)
def test_the_worked_solution_passes_its_own_check(exercise: ex.Exercise) -> None:
    space: dict[str, object] = {}
    exec(exercise.solution, space)
    name = "answer" if exercise.stub == "answer = ..." else exercise.stub[4:].split("(")[0]
    assert ex.check(exercise.id, space[name]).passed
    if exercise.stub.startswith("def"):
        assert exercise.stub.split("\n")[0] in exercise.solution


@pytest.mark.parametrize("exercise", ALL, ids=IDS)
def test_anything_that_is_no_answer_gets_a_message(exercise: ex.Exercise) -> None:
    for answer in (None, "", "nan", [], {}, float("nan"), "x" * 10_000, object(), "<b>"):
        result = ex.check(exercise.id, answer)
        assert not result.passed
        assert result.text
        assert len(result.text) < 300


def test_the_checks_can_be_imported_by_name() -> None:
    from kvlab.course import check_cache_bytes, check_from_a_config, check_inherited

    with contextlib.redirect_stdout(io.StringIO()):
        assert check_cache_bytes(cache_bytes).passed
        assert check_from_a_config(4.5).passed
        assert check_inherited("A B D E F H J").passed


def test_every_printed_size_is_half_of_what_the_function_and_the_formula_give() -> None:
    for tokens, printed in PRINTED_MIB.items():
        assert 2 * printed == page_mib(32, 8, 128, tokens) == size(tokens) / 2**20


def test_the_later_numbers_are_corrected_as_the_arithmetic_says() -> None:
    assert [right for _, _, right in corrections()] == [
        "2.5 / 10 / 40 / 160 GiB",
        "25 / 100 / 400 / 1,600 GiB",
        "16.06 GB",
        "26.7 %",
        "3.74",
        "4,096 / 1,024 / 128 MiB",
        "25 %",
        "4,096 to 2,048 MiB",
        "50 %",
        "248 / 62 / 15 / 3",
    ]


def test_three_statements_are_sound_and_seven_inherit() -> None:
    assert sum(row.inherits for row in STATEMENTS) == 7
    assert [row.letter for row in STATEMENTS] == list("ABCDEFGHIJ")
    assert not any(row.why in repr(row) for row in STATEMENTS)

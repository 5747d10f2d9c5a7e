"""The exercises of chapter 11: right answers pass, each slip is met with its own sentence."""

import pytest

from kvlab.course import checks_11 as reference
from kvlab.course.admission_11 import admission_bound
from kvlab.course.exercises import check, exercises_of
from kvlab.course.grading import Verdict

RIGHT = {
    "11-a": [admission_bound, lambda b, t, c, o, s: int(b / (-(-(c + o) // s) * s * t))],
    "11-b": [223_840, "223,840 tokens", 223_841.8],
    "11-c": [reference.start_up_lines],
    "11-d": [40, "40 requests"],
}
WRONG = {
    "11-a": {
        "growth-forgotten": lambda b, t, c, o, s: b // (-(-c // s) * s * t),
        "blocks-forgotten": lambda b, t, c, o, s: b // ((c + o) * t),
        "blocks-down": lambda b, t, c, o, s: b // ((c + o) // s * s * t),
        "rounded-up": lambda b, t, c, o, s: -(-b // (-(-(c + o) // s) * s * t)),
        "fraction": lambda b, t, c, o, s: b / (-(-(c + o) // s) * s * t),
        "true-division": lambda b, t, c, o, s: b / (-(-(c + o) / s) * s * t),
    },
    "11-b": {
        "tp-forgotten": 111_920,
        "pooled": 447_680,
        "query-heads": 55_960,
        "query-heads-no-tp": 27_980,
        "gb-for-gib": 208_464,
        "blocks": 13_990,
        "rounded": "224k",
    },
    "11-c": {
        "no-blocks": lambda a, t, s, m: (a // t // s, a // t, a // t / m),
        "whole-requests": lambda a, t, s, m: (
            a // (s * t),
            a // (s * t) * s,
            a // (s * t) // -(-m // s),
        ),
        "length-in-tokens": lambda a, t, s, m: (
            a // (s * t),
            a // (s * t) * s,
            a // (s * t) * s / m,
        ),
        "length-down": lambda a, t, s, m: (
            a // (s * t),
            a // (s * t) * s,
            a // (s * t) / (m // s),
        ),
    },
    "11-d": {
        "pooled": 160,
        "tp-ignored": 10,
        "keys-only": 80,
        "all-ranks": 640,
        "divided-again": 2.5,
        "query-heads": 0.625,
    },
}


@pytest.mark.parametrize("exercise", exercises_of("11"), ids=lambda e: e.id)
def test_the_worked_solution_and_every_right_answer_pass(exercise) -> None:
    space: dict = {}
    exec(exercise.solution, space)
    name = exercise.stub.removeprefix("def ").partition("(")[0].partition(" ")[0]
    for answer in (space[name], *RIGHT[exercise.id]):
        result = check(exercise.id, answer)
        assert result.passed and exercise.why in result.text, result.text


@pytest.mark.parametrize("exercise", exercises_of("11"), ids=lambda e: e.id)
def test_the_stub_is_not_answered_yet(exercise) -> None:
    space: dict = {}
    exec(exercise.stub, space)
    name = exercise.stub.removeprefix("def ").partition("(")[0].partition(" ")[0]
    assert check(exercise.id, space[name]).grade.verdict is Verdict.NOT_ANSWERED


@pytest.mark.parametrize(
    ("exercise_id", "slip"), [(e, slip) for e, slips in WRONG.items() for slip in slips]
)
def test_each_slip_is_met_with_its_own_sentence(exercise_id: str, slip: str) -> None:
    grade = check(exercise_id, WRONG[exercise_id][slip]).grade
    assert (grade.right, grade.misconception) == (False, slip)


def test_five_digits_are_needed_and_four_are_called_rounded() -> None:
    assert check("11-b", "223.84k").passed
    for answer in ("223.8k", 223_800, "224k"):
        assert check("11-b", answer).grade.misconception == "rounded"


def test_the_numbers_in_the_reasons_are_those_of_the_reference() -> None:
    budget, each = 24 * 2**30, 131_072
    assert 48 * 4096 * each == budget
    assert admission_bound(budget, each, 4096, 1000, 16) == 38
    assert round(0.005 * 2**30 / 73_728) == 73


def test_the_reference_gives_what_four_real_logs_print() -> None:
    for gib, tp, tokens in reference.START_UPS:
        predicted = reference.predicted_tokens(gib, tp)
        assert abs(predicted - tokens) <= 0.005 / gib * tokens + 16

"""The exercises of chapter 11: right answers pass, each slip is met with its own sentence."""

import pytest
from exercise_answers import assert_told_apart

from kvlab.course import checks_11 as reference
from kvlab.course import checks_fit
from kvlab.course.admission_11 import admission_bound
from kvlab.course.exercises import check, exercises_of

RIGHT = {
    "11-a": [admission_bound, lambda b, t, c, o, s: int(b / (-(-(c + o) // s) * s * t))],
    "11-b": [223_840, "223,840 tokens", 223_841.8],
    "11-c": [reference.start_up_lines],
    "11-d": [40, "40 requests"],
    "11-e": [[3, 15], (3, 15), "3, 15", "3/15"],
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
    "11-e": {
        "swapped": [15, 3],
        "multiplied-counts": [3, 12],
        "divided-counts": [3.75, 15],
        "gb-for-gib": [3, 14],
        "factor-2": [7, 31],
        "rounded-up": [4, 16],
        "fraction": [3.875, 15.5],
        "query-heads": [3, 3],
        "no-difference": [15, 15],
    },
}


@pytest.mark.parametrize("exercise", exercises_of("11"), ids=lambda e: e.id)
def test_right_answers_pass_and_each_slip_is_named(exercise) -> None:
    assert_told_apart(exercise, RIGHT, WRONG)


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


def test_the_heads_are_weighed_as_the_reason_says() -> None:
    why = next(exercise.why for exercise in exercises_of("11") if exercise.id == "11-e")
    assert "16 GiB a request against 4 GiB: 3 against 15" in why
    assert checks_fit.heads_that_fit() == [3, 15]

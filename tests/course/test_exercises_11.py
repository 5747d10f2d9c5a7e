"""The exercises of chapter 11: right answers pass, each slip is met with its own sentence."""

import pytest

from kvlab.course import checks_11 as reference
from kvlab.course.exercises import check, exercises_of
from kvlab.course.grading import Verdict

RIGHT = {
    "11-a": [reference.admission_bound, lambda b, t, c, o, s: int(b / (-(-(c + o) // s) * s * t))],
    "11-b": [413_056, "413,056 tokens", 412_944],
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
    },
    "11-b": {
        "tp-forgotten": 206_528,
        "pooled": 826_112,
        "query-heads": 59_008,
        "query-heads-no-tp": 29_504,
        "gb-for-gib": 384_688,
        "blocks": 25_816,
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
    "11-d": {"pooled": 160, "tp-ignored": 10, "keys-only": 80, "all-ranks": 640},
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


def test_the_reference_gives_what_four_real_logs_print() -> None:
    for gib, tp, tokens in reference.START_UPS:
        predicted = reference.predicted_tokens(gib, tp)
        assert abs(predicted - tokens) <= 0.005 / gib * tokens + 16

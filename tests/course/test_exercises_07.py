"""The exercises of chapter 07: right answers pass, each slip is met with its own sentence."""

import pytest
from exercise_answers import assert_told_apart

from kvlab.course.exercises import Exercise, exercises_of

ONCE = 40_000 / 1e6 * 3
RIGHT = {
    "07-a": [lambda prompt, equal, size: size * (min(equal, prompt - 1) // size)],
    "07-b": [93 + 64 * 14, "989 blocks", "989"],
    "07-c": [ONCE * (1.25 + 24 * 0.1), "$0.44", "0.438"],
}
WRONG = {
    "07-a": {
        "every-token": lambda prompt, equal, size: min(equal, prompt - 1),
        "last-token-too": lambda prompt, equal, size: equal - equal % size,
        "blocks": lambda prompt, equal, size: min(equal, prompt - 1) // size,
        "rounded-up": lambda prompt, equal, size: (equal + size - 1) // size * size,
        "prompt-alone": lambda prompt, equal, size: (prompt - 1) - (prompt - 1) % size,
    },
    "07-b": {
        "not-shared": 64 * -(-1700 // 16),
        "own-alone": 93 + 64 * 13,
        "rounded-up": 94 + 64 * 13,
        "shared-alone": 93,
        "tokens": 93 * 16 + 64 * 212,
        "one-request": 93 + 14,
    },
    "07-c": {
        "no-cache": 25 * ONCE,
        "write-forgotten": 25 * 0.1 * ONCE,
        "read-too-many": ONCE * (1.25 + 25 * 0.1),
        "no-premium": ONCE * (1 + 24 * 0.1),
        "million": 3 * (1.25 + 24 * 0.1),
        "read-discount-inverted": ONCE * (1.25 + 24 * 0.9),
        "cents": 100 * ONCE * (1.25 + 24 * 0.1),
    },
}


@pytest.mark.parametrize("exercise", exercises_of("07"), ids=lambda exercise: exercise.id)
def test_right_answers_pass_and_each_slip_is_named(exercise: Exercise) -> None:
    assert_told_apart(exercise, RIGHT, WRONG)

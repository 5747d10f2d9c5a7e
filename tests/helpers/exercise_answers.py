"""Put right and wrong answers to an exercise, as the tests of each chapter list them."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvlab.course.exercises import Exercise, check


def name_of(exercise: Exercise) -> str:
    """Return the name that the stub leaves open: `answer`, or a function's."""
    return exercise.stub.removeprefix("def ").partition("(")[0].partition(" ")[0]


def assert_told_apart(
    exercise: Exercise,
    right: Mapping[str, Sequence[Any]],
    wrong: Mapping[str, Mapping[str, Any]],
) -> None:
    """Every right answer passes with the reason; each wrong one gets its own name and no reason.

    The name of a slip may be followed by spaces, where one slip comes about in several ways.
    """
    assert right[exercise.id] and len(wrong[exercise.id]) >= 3
    for answer in right[exercise.id]:
        result = check(exercise.id, answer)
        assert result.passed and exercise.why in result.text, (answer, result)
    for name, answer in wrong[exercise.id].items():
        result = check(exercise.id, answer)
        assert (result.passed, result.grade.misconception) == (False, name.strip()), result
        assert exercise.why not in result.text + result._repr_html_()

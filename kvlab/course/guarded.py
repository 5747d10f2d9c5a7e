"""Run a function that a learner wrote: whatever it raises becomes one readable line.

An endless loop can't be stopped from inside Python: interrupt the kernel (the square button), and
the check ends there.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvlab.course.grading import Grade, Verdict, unread_grade
from kvlab.course.typed import Unread


@dataclass(frozen=True)
class Outcome:
    """What a call gave: a value, or one line about what went wrong."""

    value: Any = field(default=None, repr=False)
    error: str = ""


@dataclass(frozen=True)
class WrongFunction:
    """A known wrong way, as a function, and what to say to it."""

    id: str
    function: Callable[..., Any] = field(repr=False)
    feedback: str


def call(function: Callable[..., Any], arguments: Sequence[Any]) -> Outcome:
    """Call a function with copies of the arguments; an exception becomes one line.

    >>> call(lambda a: 1 / a, (0,)).error
    'ZeroDivisionError: division by zero (line 1 of your function)'
    """
    try:
        with np.errstate(all="ignore"):
            return Outcome(function(*copy.deepcopy(tuple(arguments))))
    except (Exception, SystemExit) as error:
        lines = _message(error).split("\n")
        said = f"{type(error).__name__}: {lines[0][:120]}".rstrip(": ")
        return Outcome(error=said + _line(error, function))


def _line(error: BaseException, function: Callable[..., Any]) -> str:
    """Return the line of the function that raised, counted from its first line; "" if none did."""
    code, number, step = getattr(function, "__code__", None), 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code is code:
            number = step.tb_lineno - step.tb_frame.f_code.co_firstlineno + 1
        step = step.tb_next
    return f" (line {number} of your function)" if number else ""


def _message(error: BaseException) -> str:
    """Return an exception's text, even if making it fails."""
    try:
        return str(error).strip()
    except Exception:
        return ""


def same(left: Any, right: Any) -> bool:
    """Whether two results are equal: numbers and arrays to rounding, tuples part by part.

    >>> same((1, [1.0, 2.0]), (1.0, np.array([1, 2])))
    True
    """
    if isinstance(right, tuple):
        if not isinstance(left, tuple | list) or len(left) != len(right):
            return False
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    try:
        one, other = np.asarray(left), np.asarray(right)
        if one.shape != other.shape or one.dtype.kind not in "biuf":
            return False
        if other.dtype.kind in "bi":
            return bool(np.array_equal(one, other))
        return bool(np.allclose(one, other, rtol=1e-5, atol=1e-7))
    except Exception:
        return False


def grade_function(
    answer: object,
    reference: Callable[..., Any],
    cases: Sequence[tuple[Any, ...]],
    wrong: Sequence[WrongFunction] = (),
) -> Grade:
    """Grade a function against a reference on several inputs; never raises.

    A stub (body `...`) returns None, which counts as not answered yet.
    """
    if answer is None or answer is ...:
        return unread_grade(Unread("", empty=True))
    if not callable(answer):
        return unread_grade(Unread("it is not a function: hand over its name, without calling it"))
    outcomes = [call(answer, case) for case in cases]
    if all(not got.error and (got.value is None or got.value is ...) for got in outcomes):
        return unread_grade(Unread(_returns_nothing(answer), empty=True))
    for got in outcomes:
        if got.error:
            return Grade(Verdict.WRONG, f"Your function stopped with {got.error}", "raises")
    return _judge([got.value for got in outcomes], reference, cases, wrong)


def _returns_nothing(function: Callable[..., Any]) -> str:
    """Say that a function returns nothing; one that prints may have meant to."""
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    if "print" in names:
        return "the function prints and returns nothing; did you mean `return`?"
    return "the function returns nothing"


def _judge(
    values: Sequence[Any],
    reference: Callable[..., Any],
    cases: Sequence[tuple[Any, ...]],
    wrong: Sequence[WrongFunction],
) -> Grade:
    """Compare results with the reference, then with the known wrong ways."""
    expected = [call(reference, case).value for case in cases]
    fits = [same(value, wanted) for value, wanted in zip(values, expected, strict=True)]
    if all(fits):
        return Grade(Verdict.RIGHT, "Right.")
    for known in wrong:
        theirs = [call(known.function, case).value for case in cases]
        if all(same(value, other) for value, other in zip(values, theirs, strict=True)):
            return Grade(Verdict.WRONG, known.feedback, known.id)
    place = fits.index(False)
    hint = _form(values[place], expected[place])
    text = f"Not right: it agrees for {sum(fits)} of {len(fits)} inputs tried.{hint}"
    return Grade(Verdict.WRONG, text)


def _form(value: Any, expected: Any) -> str:
    """Say when a result has another form than the one asked for."""
    if isinstance(expected, tuple):
        if not isinstance(value, tuple | list) or len(value) != len(expected):
            return f" It must return {len(expected)} things."
        parts = (_form(a, b) for a, b in zip(value, expected, strict=True))
        return next((part for part in parts if part), "")
    try:
        got, wanted = np.shape(value), np.shape(expected)
    except Exception:
        return " What it returns is not a number or an array."
    return f" It returned shape {got}; {wanted} is asked for." if got != wanted else ""

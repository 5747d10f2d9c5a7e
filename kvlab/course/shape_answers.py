"""Grade a tensor's shape: typed as "(1, 8, 16, 128)" or given as a tuple."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kvlab.course.grading import Grade, Verdict, unread_grade
from kvlab.course.typed import MAX_CHARS, Unread, clean


@dataclass(frozen=True)
class WrongShape:
    """A known wrong shape and what to say to it."""

    id: str
    shape: tuple[int, ...] = field(repr=False)
    feedback: str


def grade_shape(
    answer: object,
    expected: Sequence[int],
    axes: Sequence[str],
    wrong: Sequence[WrongShape] = (),
) -> Grade:
    """Grade a shape; never raises and never prints the expected one.

    >>> grade_shape("1 x 16 x 8", (1, 8, 16), ("batch", "heads", "tokens")).misconception
    'axes-swapped'
    """
    shape = _read_shape(answer)
    if isinstance(shape, Unread):
        return unread_grade(shape)
    if shape == tuple(expected):
        return Grade(Verdict.RIGHT, f"Right: ({', '.join(axes)}).")
    for known in wrong:
        if shape == known.shape:
            return Grade(Verdict.WRONG, known.feedback, known.id)
    if len(shape) != len(expected):
        text = f"Not right: {len(expected)} numbers are asked for, ({', '.join(axes)})."
        return Grade(Verdict.WRONG, text, "dimensions")
    if Counter(shape) == Counter(expected):
        text = f"The numbers are right, their order is not: it is ({', '.join(axes)})."
        return Grade(Verdict.WRONG, text, "axes-swapped")
    off = [name for name, a, b in zip(axes, shape, expected, strict=True) if a != b]
    return Grade(Verdict.WRONG, f"Not right yet: look again at {' and at '.join(off)}.")


def write_shape(shape: Sequence[int]) -> str:
    """Write a shape as Python does.

    >>> write_shape([2, 3])
    '(2, 3)'
    """
    return f"({', '.join(str(size) for size in shape)})"


def _read_shape(answer: object) -> tuple[int, ...] | Unread:
    """Read a shape from a text, a tuple or a list of integers."""
    if answer is None or answer is ...:
        return Unread("", empty=True)
    if isinstance(answer, tuple | list):
        if not answer or any(item is ... for item in answer):
            return Unread("", empty=True)
        plain = all(isinstance(item, int) and not isinstance(item, bool) for item in answer)
        return tuple(answer) if plain else Unread("a shape is made of integers")
    if not isinstance(answer, str) or len(answer) > MAX_CHARS:
        return Unread("it is not a shape such as (2, 3)", empty=not isinstance(answer, str))
    text = clean(answer).strip("()[] ")
    if not text.strip(". "):
        return Unread("", empty=True)
    if not re.fullmatch(r"[0-9_]+(?:\s*[,x* ]\s*[0-9_]+)*,?", text):
        return Unread("it is not a shape such as (2, 3)")
    return tuple(int(size[:12]) for size in re.findall(r"[0-9]+", text.replace("_", "")))

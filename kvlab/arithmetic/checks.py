"""Checks of plain numbers, shared by every formula: a wrong one is named in one sentence."""

import operator

from kvlab.errors import InvalidArgument

LARGEST = 10**40
"""No count is larger: every product of two stays printable and inside a float."""


def true_or_false(argument: str, value: object) -> bool:
    """Return `value` if it is True or False, or raise `InvalidArgument` naming `argument`.

    >>> true_or_false("page_cache", 1)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: page_cache=1: must be True or False
    """
    if not isinstance(value, bool):
        raise InvalidArgument(argument, value, "must be True or False")
    return value


def whole_number(argument: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`, or raise `InvalidArgument` naming `argument`.

    True and False are refused, and so is a float such as 2.0: a count is a whole number.

    >>> whole_number("num_layers", 32)
    32
    >>> whole_number("num_layers", 0)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: num_layers=0: must be a whole number of 1 or more
    """
    rule = f"must be a whole number of {minimum:,} or more"
    if isinstance(value, bool):
        raise InvalidArgument(argument, value, rule)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgument(argument, value, rule) from None
    if number < minimum:
        raise InvalidArgument(argument, value, rule)
    if number > LARGEST:
        raise InvalidArgument(argument, "a huge number", "must be 10^40 or less")
    return number

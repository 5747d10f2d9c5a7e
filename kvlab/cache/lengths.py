"""A length to which a cache may be shortened: checked in one place, for ours and for all others."""

import operator

from kvlab.errors import InvalidArgument


def token_count(n: object, held: int) -> int:
    """Return `n` as an int, where it is a whole number from 0 to `held`, the tokens in a cache.

    A whole number of numpy or a 0-d integer tensor will do; `InvalidArgument` for all else.

    >>> token_count(3, held=5)
    3
    >>> token_count(2.0, held=5)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: n=2.0: must be a whole number of tokens
    """
    try:
        number = operator.index(n)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(n, bool):
        raise InvalidArgument("n", n, "must be a whole number of tokens")
    if not 0 <= number <= held:
        raise InvalidArgument("n", number, f"must be from 0 to {held}, the tokens in the cache")
    return number

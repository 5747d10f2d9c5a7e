"""Lengths and rows to which a cache is cut down: checked in one place, for ours and for others."""

import operator

import torch
from torch import Tensor

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


def row_numbers(argument: str, rows: object) -> Tensor:
    """Return `rows`, if it is a tensor of whole numbers in one dimension: rows of a batch.

    `InvalidArgument` naming `argument` for all else; whether there are such rows, the cache knows.

    >>> row_numbers("beam_idx", [0])
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: beam_idx=[0]: must be a tensor of row numbers, torch.tensor([0])
    """
    whole = isinstance(rows, Tensor) and not (rows.is_floating_point() or rows.is_complex())
    if not whole or rows.dim() != 1 or rows.dtype == torch.bool:
        raise InvalidArgument(argument, rows, "must be a tensor of row numbers, torch.tensor([0])")
    return rows

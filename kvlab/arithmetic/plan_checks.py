"""Checks of what a plan is given, each naming its argument; and exact shares of bytes."""

import math
from fractions import Fraction

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument


def positive(argument: str, value: object) -> float:
    """Return `value` as a finite number above 0, or raise `InvalidArgument` naming it.

    >>> positive("bytes_per_second", 0)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: bytes_per_second=0: must be a finite number above 0
    """
    if not _is_finite(value) or value <= 0:  # type: ignore[operator]
        raise InvalidArgument(argument, value, "must be a finite number above 0")
    return float(value)  # type: ignore[arg-type]


def share(argument: str, value: object) -> Fraction:
    """Return `value` as an exact fraction above 0 and up to 1: 0.9 is nine tenths, not a float.

    >>> share("utilization", 0.9) * 80_000_000_000
    Fraction(72000000000, 1)
    >>> share("utilization", 90)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: utilization=90: must be above 0 and at most 1
    """
    if not _is_finite(value) or not 0 < value <= 1:  # type: ignore[operator]
        raise InvalidArgument(argument, value, "must be above 0 and at most 1")
    return Fraction(str(value))


def gib_to_bytes(argument: str, value: object) -> int:
    """Return a number of GiB, 0 or more, as bytes.

    >>> gib_to_bytes("overhead_gib", 1.5)
    1610612736
    """
    if not _is_finite(value) or value < 0:  # type: ignore[operator]
        raise InvalidArgument(argument, value, "must be a finite number of 0 or more")
    return round(Fraction(str(value)) * 2**30)


def parallel_layout(gpus: object, tp: object, pp: object, dp: object) -> tuple[int, int, int]:
    """Return (tp, pp, dp); what was left out (None) follows from the rest.

    Without tp a replica takes all GPUs there are; without dp there are as many replicas as fit.

    >>> parallel_layout(8, None, 1, None), parallel_layout(16, 8, 1, None)
    ((8, 1, 1), (8, 1, 2))
    >>> parallel_layout(6, 4, 1, None)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: gpus=6: must be a multiple of tp x pp x dp = 4 x 1 x 1
    """
    stages = whole_number("pp", pp)
    ranks = None if tp is None else whole_number("tp", tp)
    replicas = None if dp is None else whole_number("dp", dp)
    if gpus is None:
        return ranks or 1, stages, replicas or 1
    total = whole_number("gpus", gpus)
    known = stages * (ranks or 1) * (replicas or 1)
    if total % known or (ranks and replicas and total != known):
        said = f"tp x pp x dp = {ranks or 1} x {stages} x {replicas or 1}"
        kind = "equal" if ranks and replicas else "be a multiple of"
        raise InvalidArgument("gpus", gpus, f"must {kind} {said}")
    if ranks is None:
        return total // known, stages, replicas or 1
    return ranks, stages, replicas or total // known


def _is_finite(value: object) -> bool:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and math.isfinite(value)  # type: ignore[arg-type]

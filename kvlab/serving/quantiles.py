"""Exact quantiles of many numbers, 8 bytes each: 100,000 requests take less than 1 MB."""

from array import array
from collections.abc import Iterable

from kvlab.errors import InvalidArgument

SHOWN = {"p50": 50, "p95": 95, "p99": 99}


class Quantiles:
    """Numbers in a compact array; a percentile is one of them, never a value in between.

    >>> numbers = Quantiles(range(1, 101))
    >>> numbers.percentile(50), numbers.percentile(99), numbers.mean
    (50.0, 99.0, 50.5)
    """

    __slots__ = ("_values", "add")

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        self._values = array("d", numbers)
        self.add = self._values.append

    def extend(self, other: "Quantiles") -> None:
        """Take in all numbers of another one."""
        self._values.extend(other._values)

    def percentile(self, p: int) -> float | None:
        """Return the smallest number that p % of all do not exceed; None where there are none."""
        if not 0 < p <= 100:
            raise InvalidArgument("p", p, "must be above 0 and at most 100")
        ordered = sorted(self._values)
        return ordered[-(-p * len(ordered) // 100) - 1] if ordered else None

    def summary(self) -> dict[str, float | None]:
        """Return p50, p95 and p99."""
        return {name: self.percentile(p) for name, p in SHOWN.items()}

    @property
    def total(self) -> float:
        """The sum."""
        return sum(self._values)

    @property
    def mean(self) -> float | None:
        """The mean; None where there are no numbers."""
        return self.total / len(self) if self._values else None

    def __len__(self) -> int:
        return len(self._values)

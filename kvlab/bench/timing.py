"""Measure several works side by side: each once a round, in an order that turns.

What slows the machine down for a while then meets all of them alike. Values are medians over the
rounds; the spread says how far apart the rounds were.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

Work = Callable[[], "float | None"]
"""A work returns the seconds (or another number) that count, or None: then the call is timed."""


@dataclass(frozen=True)
class Times:
    """What the rounds gave, in their order; in seconds unless the work says another number.

    >>> Times((2.0, 1.0, 4.0)).median, Times((2.0, 1.0, 4.0)).spread
    (2.0, 1.5)
    """

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the middle one."""
        return median(self.values)

    @property
    def best(self) -> float:
        """Return the smallest one."""
        return min(self.values)

    @property
    def spread(self) -> float:
        """Return (largest - smallest) / median: 0 where all rounds were alike."""
        middle = self.median
        return (max(self.values) - min(self.values)) / middle if middle else 0.0


def interleaved(
    works: Mapping[str, Work], rounds: int, *, warmups: int = 1, collect: bool = True
) -> dict[str, Times]:
    """Run every work once a round and return the times of each; rounds start with another work.

    `warmups` rounds are run first and do not count. Python's garbage collector rests while a work
    runs, as in `timeit`, and is called between them (`collect`).

    >>> order = []
    >>> works = {name: lambda name=name: order.append(name) for name in "ab"}
    >>> sorted(interleaved(works, 2, warmups=0)), "".join(order)
    (['a', 'b'], 'abba')
    """
    whole_number("rounds", rounds)
    if not works:
        raise InvalidArgument("works", works, "must hold at least one work")
    values: dict[str, list[float]] = {name: [] for name in works}
    for number in range(-whole_number("warmups", warmups, minimum=0), rounds):
        for name in turned(list(works), number):
            taken = timed(works[name], collect=collect)
            if number >= 0:
                values[name].append(taken)
    return {name: Times(tuple(found)) for name, found in values.items()}


def turned(names: list[str], number: int) -> list[str]:
    """Return the names in the order of a round: each round starts one place later.

    >>> turned(["a", "b", "c"], 1), turned(["a", "b", "c"], 3)
    (['b', 'c', 'a'], ['a', 'b', 'c'])
    """
    first = number % len(names)
    return names[first:] + names[:first]


def timed(work: Work, *, collect: bool = True) -> float:
    """Run a work once; return what it says, or the seconds that it took."""
    if collect:
        gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        started = perf_counter()
        said = work()
        taken = perf_counter() - started
    finally:
        if was_on:
            gc.enable()
    return taken if said is None else said

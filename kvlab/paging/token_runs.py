"""Tokens that are known by name and length only: a shared prefix for a simulator without ids."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument


class TokenRuns(Sequence):
    """Runs of tokens one after another, each a name and a length; O(1) memory for any length.

    Two stretches are equal where they are the same part of runs with the same name, so a block
    manager finds prefixes in them as it does in token ids.

    >>> first, second = (TokenRuns(("system", 32), (user, 100)) for user in ("ann", "bob"))
    >>> len(first), first[0:16] == second[0:16], first[32:48] == second[32:48]
    (132, True, False)
    >>> first[30:36]
    (('system', 30, 32), ('ann', 0, 4))
    """

    __slots__ = ("length", "runs")

    def __init__(self, *runs: tuple[Hashable, int]) -> None:
        self.runs: list[tuple[Hashable, int, int]] = []  # name, start, end
        self.length = 0
        for name, num_tokens in runs:
            end = self.length + whole_number("num_tokens", num_tokens, minimum=0)
            self.runs.append((name, self.length, end))
            self.length = end

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, where: int | slice) -> Any:
        """Return (name, start, end) of each run that the stretch touches, counted in the run."""
        if isinstance(where, slice):
            start, stop, step = where.indices(self.length)
        else:
            start, step = range(self.length)[where], 1
            stop = start + 1
        if step != 1:
            raise InvalidArgument("step", step, "runs are cut in one piece")
        return tuple(
            (name, max(start, begin) - begin, min(stop, end) - begin)
            for name, begin, end in self.runs
            if begin < stop and start < end
        )

"""What this machine reads and multiplies, measured beside the works that it limits.

Reading is a matrix of the given size times a vector; multiplying is square times square. Both are
what this process reaches with the threads that it has, not what a data sheet says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from kvlab.bench.timing import Times

if TYPE_CHECKING:
    from torch import Tensor

COLUMNS = 8192
SIDES = (512, 1024, 2048)


class Reader:
    """Reads about `num_bytes` once a call, as a decode step reads weights; returns seconds."""

    def __init__(
        self, num_bytes: int, dtype: torch.dtype = torch.float32, device: str = "cpu"
    ) -> None:
        rows = max(1, num_bytes // (COLUMNS * dtype.itemsize))
        self.tall = torch.ones(rows, COLUMNS, dtype=dtype, device=device)
        self.vector = torch.ones(COLUMNS, dtype=dtype, device=device)
        self.num_bytes = self.tall.numel() * dtype.itemsize

    def __call__(self) -> None:
        """Read it all once."""
        _finish(self.tall @ self.vector)

    def rate(self, times: Times) -> float:
        """Return the bytes a second of the fastest round: a limit is the best that was seen."""
        return self.num_bytes / times.best


class Multiplier:
    """Multiplies two square matrices a call."""

    def __init__(self, side: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        self.side = side
        self.square = torch.ones(side, side, dtype=dtype, device=device)

    def __call__(self) -> None:
        """Multiply once."""
        _finish(self.square @ self.square)

    def rate(self, times: Times) -> float:
        """Return the FLOPs a second of the fastest round."""
        return 2 * self.side**3 / times.best


def multipliers(dtype: torch.dtype = torch.float32, device: str = "cpu") -> dict[str, Multiplier]:
    """Return the matrix products that are tried, by name: small ones fit a cache, large ones not.

    >>> list(multipliers())
    ['matrix 512', 'matrix 1024', 'matrix 2048']
    """
    sides = SIDES if device == "cpu" else (4096, 8192)
    return {f"matrix {side}": Multiplier(side, dtype, device) for side in sides}


def matrix_rate(works: dict[str, Multiplier], times: dict[str, Times]) -> float:
    """Return the FLOPs a second of the best product."""
    return max(work.rate(times[name]) for name, work in works.items())


def _finish(result: Tensor) -> None:
    if result.is_cuda:
        torch.cuda.synchronize(result.device)


Timed = Callable[[], float]

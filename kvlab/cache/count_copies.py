"""Count the bytes that are copied inside a block: what concatenating and writing in place move.

Every byte written by one of torch's copying operations counts once, where it is written; it was
read somewhere, too. Left out: arithmetic, and memory that is only reserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

COPIES = (torch.ops.aten.cat, torch.ops.aten.copy_, torch.ops.aten.clone)
"""The operations that move bytes without computing anything."""


@dataclass
class CopyCount:
    """What was copied so far: calls and bytes written."""

    calls: int = 0
    num_bytes: int = 0


@contextmanager
def count_copies() -> Iterator[CopyCount]:
    """Count the copies of this thread inside the block.

    >>> with count_copies() as count:
    ...     _ = torch.cat([torch.zeros(3, dtype=torch.float32), torch.zeros(1)])
    >>> count
    CopyCount(calls=1, num_bytes=16)
    """
    count = CopyCount()
    with _CopyMode(count):
        yield count


class _CopyMode(TorchDispatchMode):
    """See every operation of torch after autograd, and let it run."""

    def __init__(self, count: CopyCount) -> None:
        super().__init__()
        self.count = count

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if getattr(func, "overloadpacket", None) in COPIES:
            self.count.calls += 1
            self.count.num_bytes += result.nbytes
        return result

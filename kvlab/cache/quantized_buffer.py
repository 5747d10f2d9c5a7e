"""Room for rows that come a few at a time: written once, copied only when the room is full.

A buffer is never changed, only followed by a longer one that shares its memory. So an old one
stays right as long as what was written after it is not needed: what `KVLayer.snapshot` asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor

from kvlab.cache.contiguous import room_for


@dataclass(frozen=True, eq=False)
class RowBuffer:
    """The first `length` rows of dimension 2 of `data`, (batch, num_kv_heads, room, width).

    >>> import torch
    >>> buffer = RowBuffer.empty(torch.zeros(1, 1, 0, 4)).appended(torch.ones(1, 1, 10, 4))
    >>> longer = buffer.appended(torch.ones(1, 1, 1, 4))
    >>> buffer.length, longer.length, longer.data.shape[2]
    (10, 11, 15)
    """

    data: Tensor
    length: int = 0

    @classmethod
    def empty(cls, like: Tensor) -> Self:
        """Return a buffer without room for rows like these."""
        return cls(room_for(0, like))

    @property
    def rows(self) -> Tensor:
        """A view of the rows held."""
        return self.data[:, :, : self.length]

    @classmethod
    def of(cls, rows: Tensor) -> Self:
        """Return a buffer of these rows; where they can be written later, they are not copied."""
        if rows.is_inference() or not rows.is_contiguous():
            return cls.empty(rows).appended(rows)
        return cls(rows, rows.shape[2])

    def appended(self, rows: Tensor) -> Self:
        """Return the buffer with these rows behind its own."""
        end = self.length + rows.shape[2]
        data = self.data if end <= self.data.shape[2] else self._larger(end)
        data[:, :, self.length : end] = rows
        return type(self)(data, end)

    def first(self, length: int) -> Self:
        """Return the buffer with its first rows only; the next ones overwrite the others."""
        return replace(self, length=length)

    def selected(self, rows_of_batch: Tensor) -> Self:
        """Return a buffer of these sequences of the batch, without spare room."""
        return type(self)(self.rows[rows_of_batch], self.length)

    def cloned(self) -> Self:
        """Return a buffer that shares no memory with this one, without spare room."""
        return type(self)(self.rows.clone(), self.length)

    def _larger(self, needed: int) -> Tensor:
        """Return room for half as much again, or for what a long prompt needs, with the rows."""
        larger = room_for(max(needed, self.data.shape[2] * 3 // 2), self.data)
        larger[:, :, : self.length] = self.rows
        return larger

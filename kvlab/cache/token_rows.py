"""Keys and values as one row of numbers a token: the form in which a cache rests on a tier.

A new token is then one more row behind the last, and the first n tokens are one piece. Attention
wants them the other way, head by head; turning them round is the work of `pack` and `unpack`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kvlab.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The sizes of one layer's tokens. A row holds the keys of all sequences, then their values.

    >>> layout = TokenRows.of(torch.zeros(1, 2, 3, 8), torch.zeros(1, 2, 3, 8))
    >>> layout.elements, layout.nbytes == 2 * 2 * 8 * torch.get_default_dtype().itemsize
    (32, True)
    """

    batch: int
    num_kv_heads: int
    k_dim: int
    v_dim: int
    dtype: torch.dtype

    @classmethod
    def of(cls, key_states: Tensor, value_states: Tensor) -> "TokenRows":
        """Return the layout of tokens like these, (batch, num_kv_heads, q_len, width)."""
        if key_states.dtype != value_states.dtype:
            rule = f"must be {key_states.dtype}, as the keys"
            raise InvalidArgument("dtype of value_states", value_states.dtype, rule)
        batch, heads, _, k_dim = key_states.shape
        return cls(batch, heads, k_dim, value_states.shape[3], key_states.dtype)

    @property
    def elements(self) -> int:
        """Numbers in a row."""
        return self.batch * self.num_kv_heads * (self.k_dim + self.v_dim)

    @property
    def nbytes(self) -> int:
        """Bytes of a row."""
        return self.elements * self.dtype.itemsize

    def pack(self, key_states: Tensor, value_states: Tensor) -> Tensor:
        """Return tokens as rows, (q_len, elements), in memory of their own."""
        q_len = key_states.shape[2]
        parts = (t.detach().permute(2, 0, 1, 3) for t in (key_states, value_states))
        return torch.cat([part.reshape(q_len, -1) for part in parts], dim=1)

    def unpack(self, rows: Tensor, room: int = 0) -> tuple[Tensor, Tensor]:
        """Return new keys and values, (batch, num_kv_heads, tokens + room, width), from rows.

        The last `room` tokens are left to be written.
        """
        heads = self.batch * self.num_kv_heads
        split = rows.split([heads * self.k_dim, heads * self.v_dim], dim=1)
        return self._turn(split[0], self.k_dim, room), self._turn(split[1], self.v_dim, room)

    def _turn(self, part: Tensor, width: int, room: int) -> Tensor:
        n = part.shape[0]
        made = part.new_empty(self.batch, self.num_kv_heads, n + room, width)
        by_head = part.view(n, self.batch, self.num_kv_heads, width).permute(1, 2, 0, 3)
        made[:, :, :n] = by_head
        return made

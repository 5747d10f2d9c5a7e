"""Two ways to keep keys and values in one piece of memory, in the order of the tokens.

`GrowingLayer` makes longer tensors for every token; `PreallocatedLayer` makes tensors of full
length at the start and fills them. Both remember every token: nothing is evicted or compressed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.base import KVLayer
from kvlab.errors import CacheFull, is_out_of_memory


class ContiguousLayer(KVLayer):
    """What both have in common: token t lies at index t, so kept and seen are the same number.

    `keys` and `values` are (batch, num_kv_heads, tokens, head_dim); dimension 2 is time.
    """

    is_croppable = True

    def num_kept(self) -> int:
        """Return how many tokens are held: all that were seen."""
        return self.cumulative_length

    def held(self) -> tuple[Tensor, Tensor]:
        """Return views of the keys and values of the tokens held."""
        n = self.cumulative_length
        return self.keys[:, :, :n], self.values[:, :, :n]

    def take_rows(self, rows: Tensor) -> None:
        """Reorder keys and values alike, into new tensors."""
        self.keys = self.keys[rows]
        self.values = self.values[rows]


class GrowingLayer(ContiguousLayer):
    """Grow by concatenation: never a byte too many, but every step copies the whole past.

    >>> layer = GrowingLayer()
    >>> prompt, token = torch.zeros(1, 2, 5, 8), torch.zeros(1, 2, 1, 8)
    >>> keys, values = layer.update(prompt, prompt)
    >>> keys, values = layer.update(token, token)
    >>> keys.shape
    torch.Size([1, 2, 6, 8])
    >>> layer.nbytes == 2 * 2 * 6 * 8 * 4  # K and V x KV heads x tokens x head_dim x 4 bytes
    True
    """

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Start with tensors that are 0 tokens long."""
        self.keys = room_for(0, key_states)
        self.values = room_for(0, value_states)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Make tensors one piece longer and let go of the old ones."""
        self.keys = torch.cat([self.keys, key_states], dim=2)
        self.values = torch.cat([self.values, value_states], dim=2)
        return self.keys, self.values

    def keep_first(self, n: int) -> None:
        """Look at the first `n` only; the next concatenation frees the rest."""
        self.keys = self.keys[:, :, :n]
        self.values = self.values[:, :, :n]


class PreallocatedLayer(ContiguousLayer):
    """Reserve room for `capacity` tokens once, then write in place: nothing is ever copied.

    >>> layer = PreallocatedLayer(capacity=100)
    >>> token = torch.zeros(1, 2, 1, 8)
    >>> keys, values = layer.update(token, token)
    >>> layer.nbytes, layer.reserved_nbytes
    (128, 12800)
    """

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = whole_number("capacity", capacity)

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Reserve all the memory now; what it contains does not matter."""
        self.keys = room_for(self.capacity, key_states)
        self.values = room_for(self.capacity, value_states)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Write behind the tokens held; return views of the filled part."""
        start = self.cumulative_length
        end = start + key_states.shape[2]
        self.keys[:, :, start:end] = key_states
        self.values[:, :, start:end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def keep_first(self, n: int) -> None:
        """Nothing to do: once the length says `n`, the next token overwrites the one at `n`."""


def room_for(num_tokens: int, states: Tensor) -> Tensor:
    """Return uninitialised memory for `num_tokens` tokens of the kind of `states`.

    Raises `CacheFull` where the machine has not so much.
    """
    batch, num_kv_heads, _, head_dim = states.shape
    refusal = f"no memory for {num_tokens:,} tokens in one layer of the cache"
    if num_tokens >= 2**63:  # more than torch can count
        raise CacheFull(refusal)
    try:
        with torch.inference_mode(False):  # memory made inside that mode can't be written outside
            return states.new_empty(batch, num_kv_heads, num_tokens, head_dim)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise CacheFull(refusal) from None

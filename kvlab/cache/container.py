"""`KVCache`: the layers of one model's cache, and what can be done to all of them at once.

transformers' own container does the passing on to layers; here are only sums and undoing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from torch import Tensor

from kvlab.cache.base import KVLayer
from kvlab.cache.hf import CacheAdapter
from kvlab.cache.lengths import token_count


class KVCache(CacheAdapter):
    """One `KVLayer` per transformer layer. Runs in our Llama and in any transformers model.

    >>> from kvlab.cache.contiguous import GrowingLayer
    >>> KVCache([GrowingLayer(), GrowingLayer()])
    KVCache(2 x GrowingLayer, 0 tokens, 0 bytes held, 0 reserved)
    """

    def __init__(self, layers: Iterable[KVLayer]) -> None:
        super().__init__(layers=list(layers))
        self.needed_by_rollback = [0]  # lengths that open rollbacks may go back to

    def __repr__(self) -> str:
        kinds = "/".join(dict.fromkeys(type(layer).__name__ for layer in self.layers))
        return (
            f"{type(self).__name__}({len(self.layers)} x {kinds}, {self.get_seq_length()} tokens,"
            f" {self.nbytes} bytes held, {self.reserved_nbytes} reserved)"
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of the tokens held, all layers together."""
        return sum(layer.nbytes for layer in self.layers)

    @property
    def reserved_nbytes(self) -> int:
        """Bytes allocated, all layers together."""
        return sum(layer.reserved_nbytes for layer in self.layers)

    @property
    def capacity(self) -> int | None:
        """The most tokens that every layer can hold, or None where there is no limit."""
        limits = [layer.capacity for layer in self.layers if layer.capacity is not None]
        return min(limits, default=None)

    @property
    def wants_weights(self) -> bool:
        """Whether any layer decides by attention weights what to keep."""
        return any(layer.wants_weights for layer in self.layers)

    def observe(self, attention_weights: Tensor, layer_idx: int) -> None:
        """Show one layer its attention weights, (batch, num_heads, q_len, kv_len)."""
        self.layers[layer_idx].observe(attention_weights)

    def truncate_to(self, n: int) -> None:
        """Keep the first `n` tokens in every layer, 0 <= n <= tokens in the cache."""
        shortest = min(layer.get_seq_length() for layer in self.layers)
        n = token_count(n, shortest)
        for layer in self.layers:
            if n < max(self.needed_by_rollback):
                layer.copy_storage()  # the tokens after n must survive what is written next
            layer.truncate_to(n)

    def drop_last(self, n: int) -> None:
        """Drop the last `n` tokens of every layer, 0 <= n <= tokens in the cache."""
        length = self.get_seq_length()
        self.truncate_to(length - token_count(n, length))

    def select_rows(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, in this order; a row may be named twice."""
        self.batch_select_indices(rows)

    def clone(self) -> Self:
        """Return a cache with the same tokens that shares no memory with this one."""
        return type(self)(layer.clone() for layer in self.layers)

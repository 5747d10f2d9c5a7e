"""`KVCache`: the layers of one model's cache, and what can be done to all of them at once.

transformers' own container does the passing on to layers; here are only sums and undoing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from torch import Tensor

from kvlab.cache.base import KVLayer
from kvlab.cache.callers import Callers
from kvlab.cache.hf import CacheAdapter
from kvlab.cache.lengths import token_count
from kvlab.errors import Unsupported


class KVCache(CacheAdapter):
    """One `KVLayer` per transformer layer. Runs in our Llama and in any transformers model.

    >>> from kvlab.cache.contiguous import GrowingLayer
    >>> KVCache([GrowingLayer(), GrowingLayer()])
    KVCache(2 x GrowingLayer, 0 tokens, 0 bytes held, 0 reserved)
    """

    def __init__(self, layers: Iterable[KVLayer]) -> None:
        super().__init__(layers=list(layers))
        self.needed_by_rollback = [0]  # lengths that open rollbacks may go back to
        self.callers = Callers(self.layers)

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

    # -- one forward pass: what the model asks, and what it shows -------------------------

    def get_mask_sizes(self, q_len: int, layer_idx: int) -> tuple[int, int]:
        """Return (keys that `update` will return, place of the first), before `update`."""
        return self.callers.note_sizes(q_len, super().get_mask_sizes(q_len, layer_idx))

    def get_key_slots(self, q_len: int, layer_idx: int, *, windowed: bool) -> Tensor | None:
        """Return which tokens `update` will return, where a mask must know."""
        self.callers.asks_per_layer.add(layer_idx)
        return self.layers[layer_idx].get_key_slots(q_len, windowed=windowed)

    def get_next_position(self) -> int:
        """Return the place at which RoPE turns the next token; see `PlacingCache`."""
        self.callers.asks_position = True
        if not any(layer.repositions for layer in self.layers):
            return self.get_seq_length()
        places = {layer.get_next_position() for layer in self.layers}
        if len(places) > 1:
            raise Unsupported(
                f"positions='rerotated': layers keep {sorted(places)} tokens, so the"
                " next token has no one place; give all the same budget"
            )
        return places.pop()

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Store one layer's new tokens; refuse a model that can't give the layer what it needs."""
        self.callers.check(layer_idx, key_states.shape[2])
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)

    @property
    def wants_weights(self) -> bool:
        """Whether any layer decides by attention weights what to keep."""
        return any(layer.wants_weights for layer in self.layers)

    @property
    def wants_queries(self) -> bool:
        """Whether any layer decides by queries what to keep."""
        return any(layer.wants_queries for layer in self.layers)

    @property
    def picks_tokens(self) -> bool:
        """Whether any layer keeps some tokens and not others: padding would go wrong."""
        return any(layer.picks_tokens for layer in self.layers)

    def observe(self, attention_weights: Tensor, layer_idx: int) -> None:
        """Show one layer its attention weights, (batch, num_heads, q_len, kv_len)."""
        self.layers[layer_idx].observe(attention_weights)

    def observe_queries(self, query_states: Tensor, layer_idx: int) -> None:
        """Show one layer its queries, (batch, num_heads, q_len, head_dim)."""
        self.layers[layer_idx].observe_queries(query_states)

    # -- all layers at once ---------------------------------------------------------------

    def truncate_to(self, n: int) -> None:
        """Keep the first `n` tokens in every layer, 0 <= n <= tokens in the cache."""
        shortest = min(layer.get_seq_length() for layer in self.layers)
        n = token_count(n, shortest)
        undo = [layer.snapshot() for layer in self.layers]
        try:
            for layer in self.layers:
                if n < max(self.needed_by_rollback):
                    layer.copy_storage()  # the tokens after n must survive what is written next
                layer.truncate_to(n)
        except Unsupported:  # all layers or none
            for layer, state in zip(self.layers, undo, strict=True):
                layer.restore(state)
            raise

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

"""Which model is calling? kvlab's Llama asks every layer; transformers' asks one for all.

A layer that needs more than a shared mask and a shared position would run there without a word
and answer wrongly, or stop with an error about tensor sizes. Here it is refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvlab.errors import Unsupported

if TYPE_CHECKING:
    from kvlab.cache.base import KVLayer


class Callers:
    """What was asked in the forward pass under way, and whether that is enough for each layer."""

    def __init__(self, layers: Sequence[KVLayer]) -> None:
        self.layers = layers
        self.asks_per_layer: set[int] = set()  # layers whose own mask was asked for
        self.asks_position = False  # the next position was, by its own name
        self.shared_sizes: set[tuple[int, int]] = set()
        self.is_new_pass = True

    def note_sizes(self, q_len: int, sizes: tuple[int, int]) -> tuple[int, int]:
        """Remember what a mask was made for."""
        if self.is_new_pass:
            self.shared_sizes, self.is_new_pass = set(), False
        if q_len > 1:  # one query sees all that is kept, so its mask is left out
            self.shared_sizes.add(sizes)
        return sizes

    def check(self, layer_idx: int, q_len: int) -> None:
        """Raise `Unsupported` where a layer would not be given what it needs."""
        self.is_new_pass = True
        layer = self.layers[layer_idx]
        has_own_mask = layer_idx in self.asks_per_layer
        self.asks_per_layer.discard(layer_idx)
        if not has_own_mask:
            self._check_shared_mask(layer, q_len)
        if layer.repositions and not self.asks_position:
            raise Unsupported(
                f"{type(layer).__name__} with positions='rerotated': this model places tokens by"
                " the number seen; use kvlab's Llama, or call_model, which passes position_ids"
            )
        if layer_idx == len(self.layers) - 1:
            self.shared_sizes, self.asks_position = set(), False

    def _check_shared_mask(self, layer: KVLayer, q_len: int) -> None:
        if layer.own_mask_reason:
            raise Unsupported(f"{type(layer).__name__}: {layer.own_mask_reason}")
        sizes = self.shared_sizes
        if q_len > 1 and sizes and layer.get_mask_sizes(q_len) not in sizes:
            raise Unsupported(
                f"{type(layer).__name__}: layers keep different numbers of tokens, and this model"
                f" makes one mask for all; feed one token at a time, not {q_len}, or use kvlab's"
                " Llama"
            )

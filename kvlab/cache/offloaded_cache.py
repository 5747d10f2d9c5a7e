"""The cache of offloaded layers: it knows which layer comes next, and has its tokens fetched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

from kvlab.cache.container import KVCache
from kvlab.cache.traffic import Traffic

if TYPE_CHECKING:
    from kvlab.cache.offloaded import OffloadedLayer


class OffloadedCache(KVCache):
    """Offloaded layers that fetch one ahead: while a layer works, the next one's tokens come.

    `traffic` counts for all layers together. After the last layer the first one's tokens are
    fetched for the pass that may follow.
    """

    def __init__(self, layers: Iterable[OffloadedLayer]) -> None:
        super().__init__(layers)
        self.traffic = Traffic()
        for layer in self.layers:
            layer.traffic = self.traffic

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Do what every cache does, then begin to fetch the next layer's tokens."""
        visible = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        is_last = layer_idx + 1 == len(self.layers)
        if len(self.layers) > 1:
            following = self.layers[0 if is_last else layer_idx + 1]
            following.prefetch(room=1 if is_last else key_states.shape[2])
        return visible

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

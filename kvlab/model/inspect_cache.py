"""Look into the caches of two runs and say where they differ, layer by layer.

A difference is a share of the vector's own length, so 0.2 means 20 %. Nothing here changes a
cache that it is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kvlab.cache import KVCache, make_cache
from kvlab.errors import InvalidArgument
from kvlab.model.phases import prefill

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

Floats = NDArray[np.float64]
SAME = 1e-6
"""The largest difference of vectors that came from the same numbers in the same shapes."""

# Of `tiny` the name is edited: a place is read from its own row alone, a name changes later rows.
_TWINS = {
    "tiny": ("rain Ana: Paris. the door Where Maya?", "rain Maya: Paris. the door Where Maya?")
}
_ENGLISH = ("The capital of France is the city of", "The capital of Italy is the city of")


@dataclass(frozen=True, eq=False)
class CacheDifference:
    """How far keys and values of two caches lie apart, each (num_layers, positions)."""

    keys: Floats
    values: Floats

    def first_layer(self, position: int, part: str = "keys", *, above: float = SAME) -> int | None:
        """Return the first layer, counted from 1, that differs there; None if none does.

        >>> CacheDifference(np.array([[0.0], [0.3]]), np.zeros((2, 1))).first_layer(0)
        2
        """
        if part not in ("keys", "values"):
            raise InvalidArgument("part", part, "must be keys or values")
        (layers,) = np.nonzero(getattr(self, part)[:, position] > above)
        return int(layers[0]) + 1 if len(layers) else None

    @property
    def largest(self) -> float:
        """The largest difference of all."""
        return float(max(self.keys.max(), self.values.max()))


def twin_texts(loaded: "LoadedModel") -> tuple[str, str]:
    """Return two texts of equal length in tokens that differ in one early word, for this model."""
    return _TWINS.get(loaded.name, _ENGLISH)


def token_names(loaded: "LoadedModel", text: str) -> list[str]:
    """Return the tokens of a text, each as people read it."""
    ids = loaded.encode(text)[0].tolist()
    return [loaded.decode([token], skip_special=False).strip() for token in ids]


def read_into_cache(loaded: "LoadedModel", ids: Tensor) -> tuple[KVCache, Tensor]:
    """Prefill (batch, P) ids into a new cache; return it and the last logits, (batch, vocab)."""
    cache = make_cache("growing", num_layers=loaded.model.config.num_layers)
    assert cache is not None
    return cache, prefill(loaded.model, ids, cache)[:, -1]


def compare_caches(
    one: KVCache, other: KVCache, *, positions: Sequence[int] | slice = slice(None)
) -> CacheDifference:
    """Return the differences of the first sequence of each cache, at these positions.

    All KV heads of a position count as one vector; its length in `one` is the measure. Raises
    `InvalidArgument` for caches of different sizes.
    """
    parts = []
    for index in (0, 1):
        rows = []
        for mine, theirs in zip(one.layers, other.layers, strict=True):
            a, b = mine.held()[index][0].float(), theirs.held()[index][0].float()
            if a.shape != b.shape:
                raise InvalidArgument(
                    "other", tuple(b.shape), f"its shape must be {tuple(a.shape)}"
                )
            rows.append(_relative(a[:, positions], b[:, positions]))
        parts.append(torch.stack(rows).double().cpu().numpy())
    return CacheDifference(*parts)


def _relative(a: Tensor, b: Tensor) -> Tensor:
    """Return |a - b| / |a| of each position, for (num_kv_heads, positions, head_dim)."""
    length = a.pow(2).sum((0, 2)).sqrt().clamp(min=1e-12)
    return (a - b).pow(2).sum((0, 2)).sqrt() / length


def with_rows_of(cache: KVCache, other: KVCache, positions: Sequence[int]) -> KVCache:
    """Return a copy of `cache` whose keys and values at `positions` are those of `other`."""
    mixed, rows = cache.clone(), list(positions)
    for mine, theirs in zip(mixed.layers, other.layers, strict=True):
        for target, source in zip(mine.held(), theirs.held(), strict=True):
            target[:, :, rows] = source[:, :, rows]
    return mixed


def finish_with(
    loaded: "LoadedModel", cache: KVCache, other: KVCache, own_rows: Sequence[int], ids: Tensor
) -> Tensor:
    """Consume the last of `ids` over rows borrowed from `cache`; return logits, (1, vocab).

    Only `own_rows` come from `other`, the cache of `ids` itself. Both caches stay as they are.
    """
    mixed = with_rows_of(cache, other, own_rows)
    mixed.drop_last(1)
    return prefill(loaded.model, ids[:, -1:], mixed)[:, -1]

"""The adapter's other half: make transformers' own caches, and ask what they can do.

With `hf.py` it is all of kvlab that knows transformers' cache names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformers import LlamaConfig, cache_utils
from transformers.cache_utils import Cache

from kvlab.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from transformers import PretrainedConfig

TRANSFORMERS_CACHES = ("dynamic", "static", "fp8")


def transformers_cache(kind: str, *, num_layers: int, capacity: int | None = None) -> Cache:
    """Return one of transformers' caches: "dynamic", "static" (needs `capacity`) or "fp8".

    >>> len(transformers_cache("static", num_layers=2, capacity=8).layers)
    2
    """
    if kind not in TRANSFORMERS_CACHES:
        raise InvalidArgument("kind", kind, f"must be one of {', '.join(TRANSFORMERS_CACHES)}")
    config = LlamaConfig(num_hidden_layers=num_layers)
    if kind == "dynamic":
        return cache_utils.DynamicCache(config=config)
    if kind == "static":
        if capacity is None:
            raise InvalidArgument("capacity", capacity, "a static cache needs its size in tokens")
        return cache_utils.StaticCache(config=config, max_cache_len=capacity)
    if not hasattr(cache_utils, "Fp8QuantizedLayer"):
        raise Unsupported("this transformers has no FP8 cache layer; 5.22 and later have")
    return cache_utils.QuantizedCache(backend="fp8", config=config)


def cache_for(config: PretrainedConfig) -> Cache:
    """Return the empty cache that transformers itself makes for a model with this config."""
    return cache_utils.DynamicCache(config=config)


def can_crop(cache: Cache) -> bool:
    """Return whether a cache can drop its last tokens and be as if they had never come.

    transformers' static layers learned it after 5.15, its quantised layers cannot.
    """
    return all(hasattr(x, "crop") for x in cache.layers) and getattr(cache, "is_croppable", True)


def is_restorable(layer: object) -> bool:
    """Return whether a stock layer can be put back without having copied its tensors.

    It can where old tensors are replaced, or written only past the tokens held.
    """
    if isinstance(layer, cache_utils.LinearAttentionCacheLayerMixin):
        return False
    return isinstance(layer, cache_utils.DynamicLayer) or type(layer) is cache_utils.StaticLayer


def fraction_filled(layer: object) -> tuple[int, int]:
    """Return (tokens held, tokens allocated) of a stock layer with a fixed buffer, else (1, 1)."""
    if not isinstance(layer, cache_utils.StaticLayer) or not layer.is_initialized:
        return 1, 1
    allocated = layer.keys.shape[-2]
    return min(int(layer.get_seq_length()), allocated), allocated

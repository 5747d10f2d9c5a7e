"""Caches: one storage idea per file, each a layer that also runs inside transformers' models.

Names are looked up when first used, so that the protocol alone does not import transformers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvlab.cache.base import KVLayer
    from kvlab.cache.budgets import pyramid_budgets, split_budget
    from kvlab.cache.build import CACHE_NAMES, check_options, layer_options, make_cache
    from kvlab.cache.container import KVCache
    from kvlab.cache.contiguous import GrowingLayer, PreallocatedLayer
    from kvlab.cache.evicting import EvictingLayer
    from kvlab.cache.eviction_observed import ExpectedLayer, HeavyHitterLayer
    from kvlab.cache.eviction_scores import (
        KeyDiffLayer,
        KeyNormLayer,
        RandomLayer,
        SinksLayer,
        WindowLayer,
    )
    from kvlab.cache.hf import call_model, generate_with
    from kvlab.cache.hf_caches import transformers_cache
    from kvlab.cache.offloaded import OffloadedLayer
    from kvlab.cache.operations import (
        cache_length,
        cache_nbytes,
        cache_reserved_nbytes,
        require_empty,
        rollback,
        truncate_to,
        unseen_tokens,
    )
    from kvlab.cache.paged import PagedCache
    from kvlab.cache.paged_layer import PagedLayer
    from kvlab.cache.per_head import PerHeadLayer
    from kvlab.cache.protocol import KVCacheProtocol, wants_weights
    from kvlab.cache.quantized import QuantizedLayer
    from kvlab.cache.windowed import SlidingWindowLayer, windowed_cache

_HOME = {
    "base": ["KVLayer"],
    "budgets": ["pyramid_budgets", "split_budget"],
    "build": ["CACHE_NAMES", "check_options", "layer_options", "make_cache"],
    "container": ["KVCache"],
    "contiguous": ["GrowingLayer", "PreallocatedLayer"],
    "evicting": ["EvictingLayer"],
    "eviction_observed": ["ExpectedLayer", "HeavyHitterLayer"],
    "eviction_scores": [
        "KeyDiffLayer",
        "KeyNormLayer",
        "RandomLayer",
        "SinksLayer",
        "WindowLayer",
    ],
    "hf": ["call_model", "generate_with"],
    "hf_caches": ["transformers_cache"],
    "offloaded": ["OffloadedLayer"],
    "operations": [
        "cache_length",
        "cache_nbytes",
        "cache_reserved_nbytes",
        "require_empty",
        "rollback",
        "truncate_to",
        "unseen_tokens",
    ],
    "paged": ["PagedCache"],
    "paged_layer": ["PagedLayer"],
    "per_head": ["PerHeadLayer"],
    "protocol": ["KVCacheProtocol", "wants_weights"],
    "quantized": ["QuantizedLayer"],
    "windowed": ["SlidingWindowLayer", "windowed_cache"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CACHE_NAMES",
    "EvictingLayer",
    "ExpectedLayer",
    "GrowingLayer",
    "HeavyHitterLayer",
    "KVCache",
    "KVCacheProtocol",
    "KVLayer",
    "KeyDiffLayer",
    "KeyNormLayer",
    "OffloadedLayer",
    "PagedCache",
    "PagedLayer",
    "PerHeadLayer",
    "PreallocatedLayer",
    "QuantizedLayer",
    "RandomLayer",
    "SinksLayer",
    "SlidingWindowLayer",
    "WindowLayer",
    "cache_length",
    "cache_nbytes",
    "cache_reserved_nbytes",
    "call_model",
    "check_options",
    "generate_with",
    "layer_options",
    "make_cache",
    "pyramid_budgets",
    "require_empty",
    "rollback",
    "split_budget",
    "transformers_cache",
    "truncate_to",
    "unseen_tokens",
    "wants_weights",
    "windowed_cache",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)

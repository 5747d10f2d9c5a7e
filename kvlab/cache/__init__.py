"""Caches: one storage idea per file, each a layer that also runs inside transformers' models.

Names are looked up when first used, so that the protocol alone does not import transformers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvlab.cache.base import KVLayer
    from kvlab.cache.build import CACHE_NAMES, make_cache
    from kvlab.cache.container import KVCache
    from kvlab.cache.contiguous import GrowingLayer, PreallocatedLayer
    from kvlab.cache.hf import call_model, generate_with
    from kvlab.cache.hf_caches import transformers_cache
    from kvlab.cache.operations import (
        cache_length,
        cache_nbytes,
        cache_reserved_nbytes,
        require_empty,
        rollback,
        truncate_to,
        unseen_tokens,
    )
    from kvlab.cache.protocol import KVCacheProtocol, wants_weights

_HOME = {
    "base": ["KVLayer"],
    "build": ["CACHE_NAMES", "make_cache"],
    "container": ["KVCache"],
    "contiguous": ["GrowingLayer", "PreallocatedLayer"],
    "hf": ["call_model", "generate_with"],
    "hf_caches": ["transformers_cache"],
    "operations": [
        "cache_length",
        "cache_nbytes",
        "cache_reserved_nbytes",
        "require_empty",
        "rollback",
        "truncate_to",
        "unseen_tokens",
    ],
    "protocol": ["KVCacheProtocol", "wants_weights"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CACHE_NAMES",
    "GrowingLayer",
    "KVCache",
    "KVCacheProtocol",
    "KVLayer",
    "PreallocatedLayer",
    "cache_length",
    "cache_nbytes",
    "cache_reserved_nbytes",
    "call_model",
    "generate_with",
    "make_cache",
    "require_empty",
    "rollback",
    "transformers_cache",
    "truncate_to",
    "unseen_tokens",
    "wants_weights",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)

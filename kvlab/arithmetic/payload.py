"""The bytes of one store: on one rank, after some tokens, in an element type.

Every number is an int. A row is what one entry keeps on a rank: its keys and its values are rounded
to whole blocks of the element type separately, as llama.cpp's rows are.
"""

from dataclasses import dataclass

from kvlab.arithmetic.dtypes import CacheDtype, cache_dtype
from kvlab.arithmetic.ranks import heads_on_rank, state_elements_on_rank
from kvlab.arithmetic.storage import LayerStorage, StateTensor

COMPUTED = ("fp32", "bf16", "fp16")
"""Types in which a model computes: a state without a dtype of its own follows the cache there."""


@dataclass(frozen=True, slots=True)
class CacheTypes:
    """The element types of keys (and latents) and of values, and that of states.

    >>> CacheTypes.of("q8_0", "fp16").state.name
    'bf16'
    """

    key: CacheDtype
    value: CacheDtype
    state: CacheDtype

    @classmethod
    def of(cls, key: "str | CacheDtype", value: "str | CacheDtype | None" = None) -> "CacheTypes":
        """Return the types for a cache dtype; values follow the keys unless said otherwise.

        No engine presses its states into 8 bit or less: beside such a cache they stay in bf16.
        """
        keys = cache_dtype(key)
        values = keys if value is None else cache_dtype(value)
        return cls(keys, values, keys if keys.name in COMPUTED else cache_dtype("bf16"))


def entry_bytes(layer: LayerStorage, types: CacheTypes, tp: int = 1) -> int:
    """Return the bytes of one entry of a store on the fullest rank.

    >>> layer = LayerStorage(0, "full", num_kv_heads=8, k_dim=128, v_dim=128)
    >>> entry_bytes(layer, CacheTypes.of("bf16")), entry_bytes(layer, CacheTypes.of("bf16"), tp=16)
    (4096, 512)
    """
    heads = heads_on_rank(layer.num_kv_heads, tp)
    return types.key.bytes_for(heads * layer.k_dim) + types.value.bytes_for(heads * layer.v_dim)


def store_bytes(layer: LayerStorage, tokens: int, types: CacheTypes, tp: int = 1) -> int:
    """Return the bytes that a growing store needs after `tokens` tokens, window and all."""
    return layer.entries(tokens) * entry_bytes(layer, types, tp)


def full_length_bytes(layer: LayerStorage, tokens: int, types: CacheTypes, tp: int = 1) -> int:
    """Return the bytes of a growing store that keeps every token: what a reservation takes."""
    return tokens // layer.stride * entry_bytes(layer, types, tp)


def index_bytes(layer: LayerStorage, tokens: int, types: CacheTypes) -> int:
    """Return the bytes of an indexer's keys: one for all heads, whole on every rank."""
    if not layer.index_elements:
        return 0
    return tokens // layer.stride * types.key.bytes_for(layer.index_elements)


def state_bytes(layer: LayerStorage, types: CacheTypes, tp: int = 1) -> int:
    """Return the bytes of a layer's fixed states for one sequence on the fullest rank."""
    return sum(_state_tensor_bytes(state, types, tp) for state in layer.states)


def _state_tensor_bytes(state: StateTensor, types: CacheTypes, tp: int) -> int:
    dtype = types.state if state.dtype is None else cache_dtype(state.dtype)
    return dtype.bytes_for(state_elements_on_rank(state, tp))

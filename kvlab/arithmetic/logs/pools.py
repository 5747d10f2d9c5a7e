"""The pools into which engines other than vLLM put layers, and what a token costs in each."""

from dataclasses import dataclass, replace

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.payload import CacheTypes
from kvlab.arithmetic.ranks import check_tp, heads_on_rank, split_layers
from kvlab.arithmetic.storage import GROWING, LATENT, LayerStorage, ModelStorage


@dataclass(frozen=True, slots=True)
class Pool:
    """Some layers of a model, and the bytes that one cell costs in them: keys, values."""

    name: str
    layers: tuple[LayerStorage, ...]
    k_bytes: int
    v_bytes: int

    @property
    def cell_bytes(self) -> int:
        """Bytes of one cell in all layers of the pool."""
        return self.k_bytes + self.v_bytes

    @property
    def window(self) -> int:
        """The widest window of the pool's layers; 0 where none has one."""
        return max((layer.window or 0 for layer in self.layers), default=0)


def pool_of(name: str, layers: "tuple[LayerStorage, ...]", types: CacheTypes, tp: int = 1) -> Pool:
    """Return a pool with the bytes of one of its cells on one rank.

    >>> from kvlab.arithmetic.reader import read_model
    >>> layers = read_model("smollm2").layers
    >>> pool_of("all", layers, CacheTypes.of("fp16")).cell_bytes
    23040
    """
    keys = values = 0
    for layer in layers:
        heads = heads_on_rank(layer.num_kv_heads, tp)
        keys += types.key.bytes_for(heads * layer.k_dim) // layer.stride
        values += types.value.bytes_for(heads * layer.v_dim) // layer.stride
    return Pool(name, layers, keys, values)


def pools_of(case: Case, key: str | None = None, value: str | None = None) -> tuple[Pool, ...]:
    """Return the pools that a line may speak of: all layers, those with a window, the others.

    Each pipeline stage has its own; draft layers (multi-token prediction) are one more. Empty
    when the model is not known or stores nothing.
    """
    model, settings = case.model, case.settings
    if model is None:
        return ()
    tp = check_tp(model, settings.tp)
    types = CacheTypes.of(key or settings.cache_dtype, value or key or settings.value_dtype)
    chosen = []
    for stage in split_layers(model, settings.pp):
        chosen += _parts(tuple(layer for layer in stage if layer.kind in GROWING))
    chosen += [("draft layers (MTP)", draft)] if (draft := _draft(case.with_mtp, model)) else []
    return tuple(pool_of(name, layers, types, tp) for name, layers in chosen if layers)


def _parts(every: "tuple[LayerStorage, ...]") -> "list[tuple[str, tuple[LayerStorage, ...]]]":
    full = tuple(layer for layer in every if layer.window is None)
    windowed = tuple(layer for layer in every if layer.window is not None)
    chosen = [("all layers", every)]
    if full and windowed:
        chosen += [("layers without a window", full), ("windowed layers", windowed)]
    return chosen


def _draft(with_mtp: ModelStorage | None, model: ModelStorage) -> tuple[LayerStorage, ...]:
    if with_mtp is None:
        return ()
    return tuple(x for x in with_mtp.layers if x.index >= model.num_layers and x.kind in GROWING)


def latent_views(pool: Pool, types: CacheTypes) -> tuple[Pool, ...]:
    """Return how engines print a latent as K and V: all under K, or the latent under V."""
    if not any(layer.kind == LATENT for layer in pool.layers):
        return (pool,)
    rope = sum(types.key.bytes_for(x.num_kv_heads * x.v_dim) for x in pool.layers)
    latent = sum(types.value.bytes_for(x.num_kv_heads * x.k_dim) for x in pool.layers)
    whole = sum(types.key.bytes_for(x.elements_per_entry) for x in pool.layers)
    return (
        replace(pool, name=f"{pool.name}, latent and RoPE key as K", k_bytes=whole, v_bytes=0),
        replace(
            pool, name=f"{pool.name}, RoPE key as K, latent as V", k_bytes=rope, v_bytes=latent
        ),
    )


def state_parts(model: ModelStorage, tp: int, element_bytes: int = 4) -> tuple[int, int]:
    """Return the bytes of one slot in all layers: convolutions, and recurrent states.

    >>> from kvlab.arithmetic.reader import read_model
    >>> state_parts(read_model("Qwen/Qwen3.5-27B"), tp=1)[1] // 48 == 48 * 128 * 128 * 4
    True
    """
    convolution = recurrent = 0
    for layer in model.layers:
        for state in layer.states:
            size = -(-state.units // tp) * state.engine_elements_per_unit * element_bytes
            if state.kernel:
                convolution += size
            else:
                recurrent += size
    return convolution, recurrent

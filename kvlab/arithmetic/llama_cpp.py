"""What llama.cpp allocates: all cells at the start, padded, in rows of the chosen types.

Rules and their sources: `src/llama-kv-cache.cpp` (one row of K and one of V for each cell),
`src/llama-kv-cache-iswa.cpp` (a second, smaller cache for windowed layers), `src/llama-context.cpp`
(padding of the context), `src/llama-memory-recurrent.cpp` (states in fp32, one slot a sequence).
"""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.dtypes import CacheDtype
from kvlab.arithmetic.payload import CacheTypes, entry_bytes
from kvlab.arithmetic.storage import GROWING, LayerStorage, ModelStorage

PADDING = 256
"""Cells to which a cache is padded."""


@dataclass(frozen=True, slots=True)
class LlamaCppCache:
    """The caches of one context in bytes: of full layers, of windowed layers, and of states."""

    kv_bytes: int
    swa_bytes: int
    state_bytes: int
    cells: int
    swa_cells: int
    notes: tuple[str, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Everything together."""
        return self.kv_bytes + self.swa_bytes + self.state_bytes


def llama_cpp_bytes(
    model: ModelStorage,
    *,
    context: int,
    sequences: int = 1,
    cache_dtype: "str | CacheDtype" = "fp16",
    value_dtype: "str | CacheDtype | None" = None,
    ubatch: int = 512,
    swa_full: bool = False,
    unified: bool = False,
) -> LlamaCppCache:
    """Return what a context of `context` tokens, shared by `sequences`, allocates.

    `cells` and `swa_cells` are totals over all sequences. Windowed layers get window + ubatch
    cells a sequence, unless `swa_full` gives them the whole context.

    >>> from kvlab.arithmetic.reader import read_model
    >>> cache = llama_cpp_bytes(read_model("smollm2"), context=4096, cache_dtype="q8_0")
    >>> cache.kv_bytes / 2**20
    47.8125
    """
    slots = whole_number("sequences", sequences)
    streams = 1 if unified else slots
    per_stream = _padded(-(-whole_number("context", context) // streams))
    types = CacheTypes.of(cache_dtype, value_dtype)
    window = max((x.window or 0 for x in model.layers if x.kind in GROWING), default=0)
    wanted = window * (slots if unified else 1) + whole_number("ubatch", ubatch)
    swa = per_stream if swa_full else _padded(min(per_stream, wanted))
    kv = windowed = states = 0
    for layer, count in model.counted:
        if layer.kind not in GROWING:
            states += count * slots * _state_bytes(layer)
        elif layer.window is None:
            kv += count * streams * per_stream * entry_bytes(layer, types)
        else:
            windowed += count * streams * swa * entry_bytes(layer, types)
    cells = streams * per_stream, streams * swa if windowed else 0
    return LlamaCppCache(kv, windowed, states, *cells, _notes(types))


def _notes(types: CacheTypes) -> tuple[str, ...]:
    if not types.value.has_scales:
        return ()
    return ("a quantised V cache needs flash attention: without it llama.cpp refuses to start",)


def _padded(cells: int) -> int:
    return -(-cells // PADDING) * PADDING


def _state_bytes(layer: LayerStorage) -> int:
    return sum(4 * state.units * state.engine_elements_per_unit for state in layer.states)

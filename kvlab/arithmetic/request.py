"""What one batch of requests needs: payload and reservation, whole and on the tightest rank.

payload: what the mathematics needs (windowed layers capped at their window).
reservation: the full length for every layer, as a static cache or a uniform-page engine takes it.
What an engine's allocator charges is in `vllm_pages` and `llama_cpp`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.dtypes import CacheDtype
from kvlab.arithmetic.payload import (
    CacheTypes,
    entry_bytes,
    full_length_bytes,
    index_bytes,
    state_bytes,
    store_bytes,
)
from kvlab.arithmetic.ranks import check_tp, counted_stages, tp_notes
from kvlab.arithmetic.storage import CROSS, GROWING, LayerStorage, ModelStorage

Counted = tuple[tuple[LayerStorage, int], ...]


@dataclass(frozen=True, slots=True)
class StageSize:
    """The bytes of one batch on one rank of one pipeline stage.

    `bytes_per_token` is for one request while every layer still grows.
    """

    bytes_per_token: int
    kv_bytes: int
    state_bytes: int
    cross_bytes: int
    index_bytes: int
    reserved_bytes: int

    @property
    def request_bytes(self) -> int:
        """Everything the payload counts."""
        return self.kv_bytes + self.state_bytes + self.cross_bytes + self.index_bytes


@dataclass(frozen=True, slots=True)
class RequestSize:
    """One batch, whole and on the tightest rank; every entry is an exact int of bytes."""

    whole: StageSize
    stages: tuple[StageSize, ...]
    notes: tuple[str, ...]

    @property
    def tightest(self) -> StageSize:
        """The stage whose rank keeps most for this batch."""
        return max(self.stages, key=lambda stage: stage.request_bytes)

    @property
    def bytes_per_token(self) -> int:
        """Bytes that a token adds to keys, values and latents while every layer still grows."""
        return self.whole.bytes_per_token

    @property
    def bytes_per_token_per_rank(self) -> int:
        """The same on the rank where a token adds most."""
        return max(stage.bytes_per_token for stage in self.stages)

    @property
    def kv_bytes(self) -> int:
        """Keys, values and latents of the batch, windowed layers capped at their window."""
        return self.whole.kv_bytes

    @property
    def state_bytes(self) -> int:
        """Recurrent and convolutional states of the batch."""
        return self.whole.state_bytes

    @property
    def cross_bytes(self) -> int:
        """Keys and values of cross-attention: fixed by the source."""
        return self.whole.cross_bytes

    @property
    def index_bytes(self) -> int:
        """Keys of a sparse-attention indexer."""
        return self.whole.index_bytes

    @property
    def request_bytes(self) -> int:
        """The payload: the sum of the four above."""
        return self.whole.request_bytes

    @property
    def request_bytes_per_rank(self) -> int:
        """The payload on the tightest rank."""
        return self.tightest.request_bytes

    @property
    def reserved_bytes(self) -> int:
        """The reservation: full length for every layer, states and sources included."""
        return self.whole.reserved_bytes

    @property
    def reserved_bytes_per_rank(self) -> int:
        """The reservation on the rank where it is largest."""
        return max(stage.reserved_bytes for stage in self.stages)


def size_request(
    model: ModelStorage,
    *,
    context: int,
    batch: int = 1,
    cache_dtype: "str | CacheDtype" = "bf16",
    value_dtype: "str | CacheDtype | None" = None,
    tp: int = 1,
    pp: int = 1,
    source_length: int = 0,
) -> RequestSize:
    """Return what `batch` requests of `context` tokens each need.

    `source_length` is the positions of an encoder or of images, for cross-attention. Raises
    `InvalidArgument` for anything that is no whole number, for a tp that does not divide the query
    heads and for more stages than layers.

    >>> from kvlab.arithmetic.reader import read_model
    >>> size_request(read_model("llama-3.1-70b"), context=8192).kv_bytes
    2684354560
    >>> size_request(read_model("deepseek-v3"), context=1, tp=8).bytes_per_token_per_rank
    70272
    """
    tokens, requests = whole_number("context", context), whole_number("batch", batch)
    source = whole_number("source_length", source_length, minimum=0)
    types, ranks = CacheTypes.of(cache_dtype, value_dtype), check_tp(model, tp)
    amounts = tokens, requests, source
    whole = _sized(model.counted, amounts, types, 1)
    stages = counted_stages(model, pp)
    alone = len(stages) == ranks == 1
    sizes = (whole,) if alone else tuple(_sized(s, amounts, types, ranks) for s in stages)
    return RequestSize(whole, sizes, _notes(model, ranks, source))


def _sized(layers: Counted, amounts: tuple[int, int, int], types: CacheTypes, tp: int) -> StageSize:
    tokens, batch, source = amounts
    per_token = kv = fixed = cross = index = full = 0
    for layer, count in layers:
        if layer.kind in GROWING:
            per_token += count * (entry_bytes(layer, types, tp) // layer.stride)
            kv += count * store_bytes(layer, tokens, types, tp)
            full += count * full_length_bytes(layer, tokens, types, tp)
            index += count * index_bytes(layer, tokens, types)
        elif layer.kind == CROSS:
            cross += count * source * entry_bytes(layer, types, tp)
        elif layer.states:
            fixed += count * state_bytes(layer, types, tp)
    kv, fixed, cross, index = (batch * amount for amount in (kv, fixed, cross, index))
    return StageSize(per_token, kv, fixed, cross, index, batch * full + fixed + cross + index)


def _notes(model: ModelStorage, tp: int, source: int) -> tuple[str, ...]:
    notes = [*model.notes, *tp_notes(model, tp)]
    if not source and _has_cross(model.layers):
        notes.append("cross-attention keeps keys and values of its source: give source_length")
    return tuple(notes)


def _has_cross(layers: Iterable[LayerStorage]) -> bool:
    return any(layer.kind == CROSS for layer in layers)

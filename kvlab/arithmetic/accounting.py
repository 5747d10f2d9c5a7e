"""Payload, reservation and what two engines charge, side by side, for one batch of requests."""

from dataclasses import dataclass

from kvlab.arithmetic.dtypes import CacheDtype, cache_dtype
from kvlab.arithmetic.llama_cpp import llama_cpp_bytes
from kvlab.arithmetic.ranks import counted_stages
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.storage import CROSS, ModelStorage
from kvlab.arithmetic.vllm_pages import vllm_layout
from kvlab.errors import Unsupported

MAX_BATCHED_TOKENS = 8192
"""Tokens that vLLM schedules in a step unless told otherwise; windowed layers pay for them."""


@dataclass(frozen=True, slots=True)
class Accountings:
    """The same batch counted in four ways, in bytes, on the tightest rank.

    An engine that cannot hold such a cache has None, and a note says why.
    """

    payload_bytes: int
    reserved_bytes: int
    vllm_bytes: int | None
    llama_cpp_bytes: int | None
    notes: tuple[str, ...]


def accountings(
    model: ModelStorage,
    *,
    context: int,
    batch: int = 1,
    cache_type: "str | CacheDtype" = "bf16",
    tp: int = 1,
    pp: int = 1,
    source_length: int = 0,
    block_size: int = 16,
    max_batched_tokens: int = MAX_BATCHED_TOKENS,
) -> Accountings:
    """Return payload, reservation and the charges of vLLM and llama.cpp for one batch.

    gpt-oss-20b, 8,192 tokens: windowed layers need 128 of them, vLLM charges a batch on top, and a
    reservation keeps them all.

    >>> from kvlab.arithmetic.reader import read_model
    >>> found = accountings(read_model("gpt-oss-20b"), context=8192, max_batched_tokens=2048)
    >>> [round(n / 2**20, 1) for n in (found.payload_bytes, found.vllm_bytes, found.reserved_bytes)]
    [195.0, 243.4, 384.0]
    """
    parallel = {"tp": tp, "pp": pp}
    dtype = cache_dtype(cache_type)
    sized = size_request(
        model,
        context=context,
        batch=batch,
        cache_dtype=dtype,
        source_length=source_length,
        **parallel,
    )
    notes: list[str] = []
    vllm = _vllm(model, dtype, parallel, (context, max_batched_tokens, source_length), block_size)
    if isinstance(vllm, str):
        notes.append(vllm)
    llama = _llama_cpp(model, dtype, parallel, (context, batch))
    if isinstance(llama, str):
        notes.append(llama)
    return Accountings(
        sized.request_bytes_per_rank,
        sized.reserved_bytes_per_rank,
        None if isinstance(vllm, str) else batch * vllm,
        None if isinstance(llama, str) else llama,
        tuple(notes),
    )


def _vllm(
    model: ModelStorage,
    dtype: CacheDtype,
    parallel: dict[str, int],
    lengths: tuple[int, int, int],
    block_size: int,
) -> int | str:
    if dtype.block > 1:
        return f"vLLM has no cache of type {dtype.name}"
    charges = []
    for stage in range(len(counted_stages(model, parallel["pp"]))):
        options = {"block_size": block_size, "cache_dtype": dtype, "stage": stage, **parallel}
        try:
            layout = vllm_layout(model, **options)  # type: ignore[arg-type]
        except Unsupported as error:
            return str(error)
        charges.append(layout.request_bytes(*lengths))
    return max(charges)


def _llama_cpp(
    model: ModelStorage, dtype: CacheDtype, parallel: dict[str, int], amounts: tuple[int, int]
) -> int | str:
    context, batch = amounts
    if parallel["tp"] * parallel["pp"] > 1:
        return "llama.cpp is counted on one device only"
    if any(layer.kind == CROSS for layer in model.layers):
        return "llama.cpp does not keep cross-attention in this cache"
    if any(layer.index_elements for layer in model.layers):
        return "llama.cpp's store of an indexer's keys is not known here"
    if dtype.name in ("fp8", "int8", "int4"):
        return f"llama.cpp has no cache of type {dtype.name}"
    found = llama_cpp_bytes(model, context=context * batch, sequences=batch, cache_dtype=dtype)
    return found.total_bytes

"""What a server's pool says, held against the formulas: the checks of `kvlab probe`."""

from kvlab.arithmetic.dtypes import cache_dtype as known_dtype
from kvlab.arithmetic.storage import FULL, ModelStorage
from kvlab.arithmetic.units import format_bytes
from kvlab.arithmetic.vllm_pages import vllm_layout
from kvlab.errors import InvalidArgument, KvlabError
from kvlab.serving.engines.readings import Readings
from kvlab.serving.engines.runs import Agreement


def pool_checks(
    told: Readings,
    length: int | None,
    storage: ModelStorage | None,
    dtype: str,
    tp: int,
    notes: list[str],
) -> list[Agreement]:
    """Return each number of vLLM's pool beside its formula; what else there is to say, in `notes`.

    `dtype` is the cache's, "auto" where nobody says it; `length` the longest request in tokens.
    """
    checks = _plain_checks(told, length, storage)
    blocks, size = told.num_blocks, told.block_size
    if storage is None or not size or not blocks:
        return checks
    if dtype == "auto":
        dtype = storage.weights_dtype or "bf16"
        notes.append(
            f"the cache is taken to be in {dtype}, as the model's config says; a server started"
            " with another --dtype holds other bytes: name it, as --cache-dtype fp32"
        )
    try:
        layout = vllm_layout(storage, block_size=size, cache_dtype=known_dtype(dtype), tp=tp)
    except KvlabError as error:
        notes.append(f"no formula for this: {error}")
        return checks
    whole = format_bytes(blocks * layout.block_bytes)
    notes.append(f"the pool takes {whole} a rank, {layout.block_bytes // size:,} bytes a token")
    if told.budget_bytes:
        fits = told.budget_bytes // layout.block_bytes
        checks.append(Agreement("blocks = bytes set aside / bytes of a block", blocks, fits))
    elif not checks:
        raise InvalidArgument("metrics", "vllm:cache_config_info", "says nothing of the pool")
    else:
        notes.append("its budget in bytes is not in the metrics: blocks can't be predicted")
    return checks


def _plain_checks(
    told: Readings, length: int | None, storage: ModelStorage | None
) -> list[Agreement]:
    """Return what needs no size of a block in bytes."""
    checks = []
    blocks, size, tokens, each = told.num_blocks, told.block_size, told.tokens, told.concurrency
    if blocks and size and tokens:
        # Newer versions print concurrency x length: less where a length is no whole blocks.
        said = [blocks * size, *([int(each * length)] if each and length else [])]
        best = tokens if tokens in said else said[0]
        checks.append(Agreement("tokens = blocks x block size", tokens, best))
    if blocks and size and length and each and _keeps_all(storage):
        most = blocks / -(-length // size)
        checks.append(Agreement("concurrency = blocks / blocks of the longest", each, most, 0.005))
    return checks


def _keeps_all(storage: ModelStorage | None) -> bool:
    """Whether every layer keeps every token, so that all draw alike on the pool."""
    return storage is not None and all(layer.kind == FULL for layer in storage.layers)

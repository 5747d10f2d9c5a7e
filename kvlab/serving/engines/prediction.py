"""What the formulas say that an engine will report, before it is started."""

from dataclasses import asdict, dataclass
from typing import Any

from kvlab.arithmetic.llama_cpp import llama_cpp_bytes
from kvlab.arithmetic.storage import ModelStorage
from kvlab.arithmetic.units import GIB, MIB
from kvlab.arithmetic.vllm_pages import vllm_layout
from kvlab.errors import InvalidArgument


@dataclass(frozen=True)
class PagedPrediction:
    """A pool of blocks on one rank: its size, and what it holds.

    `concurrency` is requests of `max_model_len` tokens, each in whole blocks, and `tokens` is what
    the engine prints: concurrency x `max_model_len`, so less than blocks x block size where that
    length is no whole number of blocks. One block is held back by the engine: `usable_blocks` is
    what requests can have.
    """

    bytes_per_token: int
    block_bytes: int
    block_size: int
    num_blocks: int
    tokens: int
    concurrency: float
    max_model_len: int

    @property
    def usable_blocks(self) -> int:
        """Blocks that requests can have."""
        return max(0, self.num_blocks - 1)

    @property
    def longest(self) -> int:
        """Tokens of the longest request that the engine lets be asked for."""
        return self.usable_blocks * self.block_size

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for a file."""
        return asdict(self)


@dataclass(frozen=True)
class CellsPrediction:
    """llama.cpp's cells, all taken at the start: bytes of keys and values together."""

    total_bytes: int
    cells: int
    slots: int
    bytes_per_cell: float

    @property
    def mib(self) -> float:
        """The size in MiB, as its log prints it."""
        return self.total_bytes / MIB

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for a file."""
        return asdict(self)


def predict_paged(
    model: ModelStorage,
    *,
    cache_dtype: str,
    block_size: int,
    cache_bytes: int,
    max_model_len: int,
    tp: int = 1,
    max_batched_tokens: int = 2048,
) -> PagedPrediction:
    """Return the pool that vLLM makes of `cache_bytes` bytes on each rank.

    >>> from kvlab.arithmetic.reader import read_model
    >>> pool = predict_paged(read_model("smollm2"), cache_dtype="bf16", block_size=128,
    ...                      cache_bytes=2**30, max_model_len=2048)
    >>> pool.num_blocks, pool.tokens, pool.concurrency
    (364, 46592, 22.75)
    """
    layout = vllm_layout(model, block_size=block_size, cache_dtype=cache_dtype, tp=tp)
    found = layout.capacity(cache_bytes, max_model_len, max_batched_tokens)
    return PagedPrediction(
        layout.block_bytes // layout.block_size,
        layout.block_bytes,
        layout.block_size,
        found.num_blocks,
        int(found.concurrency * max_model_len),
        found.concurrency,
        max_model_len,
    )


def check_fits(pool: PagedPrediction) -> None:
    """Raise `InvalidArgument` where one request of full length would not fit, as vLLM does.

    >>> check_fits(PagedPrediction(46080, 46080 * 32, 32, 64, 2048, 0.25, 8192))
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: cache_bytes=94371840: one request of max_model_len=8,192 tokens \
needs 257 blocks with the one held back, 0.35 GiB; say more bytes, or at most 2,016 tokens
    """
    needed = -(-pool.max_model_len // pool.block_size) + 1
    if pool.num_blocks < needed:
        rule = f"one request of max_model_len={pool.max_model_len:,} tokens needs {needed:,} blocks"
        rule += f" with the one held back, {needed * pool.block_bytes / GIB:.2f} GiB; say more"
        rule += f" bytes, or at most {pool.longest:,} tokens"
        raise InvalidArgument("cache_bytes", pool.num_blocks * pool.block_bytes, rule)


def predict_cells(
    model: ModelStorage, *, context: int, slots: int = 1, cache_dtype: str = "f16"
) -> CellsPrediction:
    """Return what llama.cpp allocates for `context` cells shared out to `slots` requests.

    >>> from kvlab.arithmetic.reader import read_model
    >>> [round(predict_cells(read_model("smollm2"), context=4096, cache_dtype=kind).mib, 2)
    ...  for kind in ("f16", "q8_0", "q4_0")]
    [90.0, 47.81, 25.31]
    """
    made = llama_cpp_bytes(model, context=context, sequences=slots, cache_dtype=cache_dtype)
    return CellsPrediction(made.total_bytes, made.cells, slots, made.total_bytes / made.cells)

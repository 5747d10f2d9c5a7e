"""What vLLM's allocator charges: pages of equal size, blocks shared by groups of layers.

Rules and their sources in vLLM (v1, main of 2026): `kv_cache_interface.py` (what a request may
need, by kind of layer), `core/kv_cache_utils.py` (groups, pages made equal, blocks, concurrency),
`models/config.py` (the block of an attention layer beside a state). Left out: speculative tokens,
prefix caching of states ("align", "all"), context parallelism.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.dtypes import CacheDtype
from kvlab.arithmetic.payload import CacheTypes
from kvlab.arithmetic.ranks import check_tp, counted_stages
from kvlab.arithmetic.storage import STATE, ModelStorage
from kvlab.arithmetic.vllm_specs import LayerSpec, equal_pages, layer_specs
from kvlab.errors import Unsupported

PADDING_LIMIT = 1.5
"""Kinds whose layer counts differ by less share one group size; older versions used 1.25."""


@dataclass(frozen=True, slots=True)
class VllmCapacity:
    """What a budget holds: blocks, the tokens that the log prints, full-length requests."""

    num_blocks: int
    tokens: int
    concurrency: float


@dataclass(frozen=True, slots=True)
class VllmLayout:
    """The pages of one rank. A block covers one page of each of `group_size` layers.

    `groups` has one spec a group; every group takes its own blocks from the same pool.
    """

    groups: tuple[LayerSpec, ...]
    group_size: int
    page_bytes: int

    @property
    def block_bytes(self) -> int:
        """Bytes of one block of the pool."""
        return self.page_bytes * self.group_size

    @property
    def block_size(self) -> int:
        """Tokens of a block of the group whose blocks are shortest."""
        sizes = (group.block_size for group in self.groups if group.kind != STATE)
        return min(sizes, default=1)

    def blocks_per_request(
        self, max_model_len: int, max_batched_tokens: int, source_length: int = 0
    ) -> int:
        """Return the blocks that one request of full length may take, over all groups."""
        length = whole_number("max_model_len", max_model_len)
        batched = whole_number("max_batched_tokens", max_batched_tokens)
        return sum(group.blocks(length, batched, source_length) for group in self.groups)

    def capacity(
        self, budget_bytes: int, max_model_len: int, max_batched_tokens: int
    ) -> VllmCapacity:
        """Return what `budget_bytes` on this rank holds.

        `tokens` is the number that vLLM prints as its KV cache size in tokens: blocks shared out
        evenly to the groups (newer versions print concurrency x length instead).
        """
        budget = whole_number("budget_bytes", budget_bytes, minimum=0)
        if not self.groups:
            return VllmCapacity(0, 0, float("inf"))
        blocks = budget // self.block_bytes
        each = self.blocks_per_request(max_model_len, max_batched_tokens)
        tokens = blocks // len(self.groups) * self.block_size
        return VllmCapacity(blocks, tokens, blocks / each)

    def request_bytes(
        self, max_model_len: int, max_batched_tokens: int, source_length: int = 0
    ) -> int:
        """Return the bytes that one request of full length is charged."""
        lengths = max_model_len, max_batched_tokens, source_length
        return self.block_bytes * self.blocks_per_request(*lengths)


def vllm_layout(
    model: ModelStorage,
    *,
    block_size: int = 16,
    cache_dtype: "str | CacheDtype" = "bf16",
    tp: int = 1,
    pp: int = 1,
    stage: int = 0,
    padding_limit: float = PADDING_LIMIT,
) -> VllmLayout:
    """Return the pages of a model on one rank of pipeline stage `stage`.

    >>> from kvlab.arithmetic.reader import read_model
    >>> layout = vllm_layout(read_model("llama-3.1-8b"))
    >>> layout.capacity(62 * 2**30, 131_072, 8192)
    VllmCapacity(num_blocks=31744, tokens=507904, concurrency=3.875)
    >>> scout = vllm_layout(read_model("llama-4-scout-17b-16e-instruct"), tp=8)
    >>> [group.kind for group in scout.groups], scout.group_size
    (['chunked', 'chunked', 'chunked', 'full'], 12)
    """
    ranks, size = check_tp(model, tp), whole_number("block_size", block_size)
    layers = counted_stages(model, pp)[stage]
    specs = layer_specs(layers, CacheTypes.of(cache_dtype), ranks, size)
    if not specs:
        return VllmLayout((), 1, 1)
    if len({spec.kind for spec, _ in specs}) == 1 and len({spec.window for spec, _ in specs}) == 1:
        return _one_group(specs)
    return _hybrid(equal_pages(specs, size), padding_limit)


def _one_group(specs: Sequence[tuple[LayerSpec, int]]) -> VllmLayout:
    """Layers that need the same tokens form one group, even where their pages differ."""
    if len(specs) == 1:
        ((spec, count),) = specs
        return VllmLayout((spec,), count, spec.page_bytes)
    return VllmLayout((specs[0][0],), 1, sum(spec.page_bytes * n for spec, n in specs))


def _hybrid(specs: Sequence[tuple[LayerSpec, int]], padding_limit: float) -> VllmLayout:
    """Kinds that need different tokens: groups with the same number of layers, padded."""
    counts = [count for _, count in specs]
    size = max(counts) if max(counts) < min(counts) * padding_limit else min(counts)
    groups = [spec for spec, count in specs for _ in range(-(-count // size))]
    pages = {spec.page_bytes for spec, _ in specs}
    if len(pages) != 1:
        raise Unsupported(f"vLLM cannot make pages of {sorted(pages)} bytes equal")
    return VllmLayout(tuple(groups), size, pages.pop())

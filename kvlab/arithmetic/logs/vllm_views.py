"""vLLM's pool as one rank of one pipeline stage sees it: what a budget holds of blocks."""

from dataclasses import dataclass, replace

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.storage import CHUNKED, CROSS, STATE, WINDOWED, ModelStorage
from kvlab.arithmetic.vllm_pages import VllmLayout, vllm_layout

USUAL_BATCHED = (8192, 2048, 16384, 4096)
"""Values of max_num_batched_tokens that are tried where the log does not say; defaults first."""

METAL = "vllm_metal"
"""The plugin that reports every layer as full attention (vllm-metal, 2026)."""


@dataclass(frozen=True, slots=True)
class View:
    """One rank's layout, with the settings that a request's size depends on."""

    layout: VllmLayout
    speculative_tokens: int = 0
    source_length: int | None = None

    @property
    def num_groups(self) -> int:
        """Groups of layers that take blocks from the pool side by side."""
        return max(len(self.layout.groups), 1)

    @property
    def block_size(self) -> int:
        """Tokens of one block."""
        return self.layout.block_size

    @property
    def block_bytes(self) -> int:
        """Bytes of one block of the pool."""
        return self.layout.block_bytes

    @property
    def depends_on_batched(self) -> bool:
        """Whether a request's blocks depend on the tokens batched in one step."""
        return any(group.kind in (WINDOWED, CHUNKED, CROSS) for group in self.layout.groups)

    def blocks(self, memory: float) -> int:
        """Return the whole blocks in `memory` bytes."""
        return max(int(memory), 0) // self.block_bytes

    def tokens(self, memory: float) -> int:
        """Return the tokens that the log prints for `memory` bytes."""
        return self.blocks(memory) // self.num_groups * self.block_size

    def request_blocks(self, length: int, batched: int) -> int:
        """Return the blocks of one request: a state takes a slot more for each drafted token."""
        source = batched if self.source_length is None else self.source_length
        states = sum(group.kind == STATE for group in self.layout.groups)
        blocks = self.layout.blocks_per_request(length, batched, source)
        return blocks + states * self.speculative_tokens

    def request_bytes(self, length: int, batched: int) -> int:
        """Return the bytes that one request is charged."""
        return self.request_blocks(length, batched) * self.block_bytes

    def concurrency(self, memory: float, length: int, batched: int) -> float:
        """Return how many requests of full length `memory` holds."""
        return self.blocks(memory) / self.request_blocks(length, batched)

    def longest(self, memory: float, batched: int) -> int:
        """Return the longest request that fits into `memory`, in whole blocks."""
        low, high = 0, max(int(memory) // max(self.block_bytes, 1) + 1, 1)
        while low < high:
            middle = (low + high + 1) // 2
            if self.request_bytes(middle * self.block_size, batched) <= memory:
                low = middle
            else:
                high = middle - 1
        return low * self.block_size


def views(case: Case) -> tuple[View, ...] | None:
    """Return the view of each pipeline stage, or None when the model is unknown.

    Raises `InvalidArgument` or `Unsupported` where vLLM itself would refuse.
    """
    if case.model is None:
        return None
    settings = case.settings
    model = full_everywhere(case.model) if settings.platform == METAL else case.model
    return tuple(
        View(
            vllm_layout(
                model,
                block_size=settings.block_size,
                cache_dtype=settings.cache_dtype,
                tp=settings.tp,
                pp=settings.pp,
                stage=stage,
                padding_limit=settings.padding_limit,
            ),
            settings.speculative_tokens,
            settings.source_length,
        )
        for stage in range(settings.pp)
    )


def full_everywhere(model: ModelStorage) -> ModelStorage:
    """Return the model with every window removed: each layer keeps every token."""
    layers = tuple(
        replace(x, kind="full", window=None) if x.kind in (WINDOWED, CHUNKED) else x
        for x in model.layers
    )
    return replace(model, layers=layers)

"""vLLM's view of a layer: its page, the blocks that a request takes, pages made equal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kvlab.arithmetic.dtypes import cache_dtype
from kvlab.arithmetic.payload import CacheTypes, entry_bytes
from kvlab.arithmetic.storage import CHUNKED, CROSS, FULL, GROWING, STATE, WINDOWED, LayerStorage

ALIGNMENT = 16
"""Tokens to which vLLM rounds the block of attention layers that share pages with states."""


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One layer as the allocator sees it: `page_bytes` hold `block_size` tokens, or one state."""

    kind: str
    window: int | None
    block_size: int
    page_bytes: int

    def blocks(self, max_model_len: int, max_batched_tokens: int, source_length: int = 0) -> int:
        """Return the most blocks that one request takes in a group of such layers.

        Full: every token. Windowed: window - 1 tokens computed before, plus those batched now,
        and one block more because a window may start inside a block. Chunked: chunk plus batched.
        State: one slot. (`max_memory_usage_bytes` of each spec in `kv_cache_interface.py`.)

        >>> LayerSpec("windowed", 128, 16, 1).blocks(131072, 8192)
        521
        """
        if self.kind == STATE:
            return 1
        if self.kind == CROSS:
            return -(-source_length // self.block_size)
        if self.kind == WINDOWED:
            tokens = min((self.window or 1) - 1 + max_batched_tokens, max_model_len)
            return -(-tokens // self.block_size) + 1
        if self.kind == CHUNKED:
            tokens = min((self.window or 0) + max_batched_tokens, max_model_len)
            return -(-tokens // self.block_size)
        return -(-max_model_len // self.block_size)


def layer_specs(
    layers: Iterable[tuple[LayerStorage, int]], types: CacheTypes, tp: int, block_size: int
) -> list[tuple[LayerSpec, int]]:
    """Return each distinct spec with how many layers have it; layers that store nothing have none.

    A latent counts as full (or windowed) attention. An indexer's keys are a layer of their own:
    one byte an element and a 4-byte scale for each 128 (`DeepseekV32IndexerCache`).
    """
    counts: dict[LayerSpec, int] = {}
    for layer, count in layers:
        for spec in _specs(layer, types, tp, block_size):
            counts[spec] = counts.get(spec, 0) + count
    return list(counts.items())


def _specs(layer: LayerStorage, types: CacheTypes, tp: int, block_size: int) -> Iterable[LayerSpec]:
    if layer.kind in GROWING or layer.kind == CROSS:
        kind = layer.kind if layer.kind in (CHUNKED, CROSS) else FULL
        kind = WINDOWED if layer.window is not None and kind == FULL else kind
        page = block_size * entry_bytes(layer, types, tp) // layer.stride
        yield LayerSpec(kind, layer.window, block_size, page)
        if layer.index_elements:
            width = layer.index_elements
            yield LayerSpec(FULL, None, block_size, block_size * (width + width // 128 * 4))
    elif layer.states:
        yield LayerSpec(STATE, None, block_size, _state_page(layer, types, tp))


def _state_page(layer: LayerStorage, types: CacheTypes, tp: int) -> int:
    """One slot: convolutions without their newest position, spread over the ranks."""
    total = 0
    for state in layer.states:
        dtype = types.state if state.dtype is None else cache_dtype(state.dtype)
        total += dtype.bytes_for(-(-state.units // tp) * state.engine_elements_per_unit)
    return total


def equal_pages(
    specs: Sequence[tuple[LayerSpec, int]], block_size: int
) -> list[tuple[LayerSpec, int]]:
    """Make all pages equal, as vLLM does before it forms groups.

    Beside states, the block of attention layers grows (in steps of 16 tokens) until its page holds
    a state, and the state's page is padded to it. Otherwise layers with smaller pages get blocks
    of more tokens, where the sizes divide.
    """
    state_page = max((spec.page_bytes for spec, _ in specs if spec.kind == STATE), default=0)
    attention = [spec.page_bytes for spec, _ in specs if spec.kind != STATE]
    if state_page and attention:
        token = max(attention) // block_size
        tokens = ALIGNMENT * -(-state_page // (ALIGNMENT * token))
        specs = [(_with_block(spec, max(tokens, block_size)), n) for spec, n in specs]
    largest = max(spec.page_bytes for spec, _ in specs)
    return _merged((_grown(spec, largest), count) for spec, count in specs)


def _with_block(spec: LayerSpec, block_size: int) -> LayerSpec:
    if spec.kind == STATE:
        return spec
    page = spec.page_bytes // spec.block_size * block_size
    return replace(spec, block_size=block_size, page_bytes=page)


def _grown(spec: LayerSpec, page_bytes: int) -> LayerSpec:
    if spec.kind == STATE:
        return replace(spec, page_bytes=page_bytes)
    if page_bytes % spec.page_bytes:
        return spec
    return _with_block(spec, spec.block_size * (page_bytes // spec.page_bytes))


def _merged(specs: Iterable[tuple[LayerSpec, int]]) -> list[tuple[LayerSpec, int]]:
    counts: dict[LayerSpec, int] = {}
    for spec, count in specs:
        counts[spec] = counts.get(spec, 0) + count
    return list(counts.items())

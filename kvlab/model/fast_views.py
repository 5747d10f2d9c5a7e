"""Which caches the fast path writes in place, and where in them a pass stands.

A pre-allocated cache in one piece, and a batch over a paged store: nothing of either is copied.
"""

import torch
from torch import Tensor

from kvlab.cache.container import KVCache
from kvlab.cache.contiguous import PreallocatedLayer
from kvlab.cache.paged_batch import PagedBatch
from kvlab.errors import CacheFull
from kvlab.model.config import LlamaConfig
from kvlab.model.fast_native import View
from kvlab.model.llama import Llama


def takes(cache: object, llama: Llama) -> bool:
    """Say whether a cache is of a kind that is written in place, in the model's dtype."""
    config, weight = llama.config, llama.lm_head.weight
    if isinstance(cache, PagedBatch):
        store = cache.store
        sizes = (config.num_layers, config.num_kv_heads, config.head_dim)
        held = (store.num_layers, *store.keys.shape[3:], store.keys.dtype, store.keys.device)
        # a row with fewer new tokens is padded with columns that hold its earlier ones
        even = all(end - start == cache.q_len for _, start, end in cache.spans)
        return even and held == (*sizes, weight.dtype, weight.device)
    if not isinstance(cache, KVCache) or len(cache.layers) != config.num_layers:
        return False
    lengths = {layer.get_seq_length() for layer in cache.layers}
    return len(lengths) == 1 and all(type(layer) is PreallocatedLayer for layer in cache.layers)


def view_of(
    cache: KVCache | PagedBatch, llama: Llama, ids: Tensor, attention_mask: Tensor | None
) -> View | None:
    """Return where new tokens `ids`, (batch, q_len), go; None where only the lesson's way is right.

    For a cache that `takes` accepts. An empty pre-allocated one gets its memory here. Raises
    `CacheFull` where it has no room, and leaves it as it was.
    """
    if isinstance(cache, PagedBatch):
        return _paged_view(cache, llama.config) if ids.shape == cache.is_new.shape else None
    past, q_len = cache.layers[0].get_seq_length(), ids.shape[1]
    first = _first_columns(attention_mask, ids, past)
    if first is None:
        return None
    for layer in cache.layers:
        if past + q_len > layer.capacity:
            raise CacheFull(
                f"cache full: {past} of {layer.capacity} tokens held, no room for {q_len} more"
            )
    if not _has_memory(cache, llama, len(ids)):
        return None
    keys, values = ([getattr(layer, name) for layer in cache.layers] for name in ("keys", "values"))
    strides = keys[0].stride()
    if any(tensor.stride() != strides or strides[3] != 1 for tensor in (*keys, *values)):
        return None
    return View(keys, values, strides[:3], past, first)


def advance(cache: object, num_tokens: int) -> None:
    """Say that so many new tokens are written; a paged batch knows already."""
    if isinstance(cache, KVCache):
        for layer in cache.layers:
            layer.cumulative_length += num_tokens


def _has_memory(cache: KVCache, llama: Llama, batch: int) -> bool:
    """Reserve memory where there is none yet; say whether it is of the right kind."""
    config, weight = llama.config, llama.lm_head.weight
    sizes = (batch, config.num_kv_heads, config.head_dim)
    for layer in cache.layers:
        if not layer.is_initialized:
            nothing = weight.new_empty(batch, config.num_kv_heads, 0, config.head_dim)
            layer.lazy_initialization(nothing, nothing)
        held = (layer.batch_size, layer.num_kv_heads, layer.head_dim, layer.dtype, layer.device)
        if held != (*sizes, weight.dtype, weight.device):
            return False
    return True


def _first_columns(attention_mask: Tensor | None, ids: Tensor, past: int) -> Tensor | None:
    """Return each row's first column that is no padding; None where padding is not on the left."""
    if attention_mask is None:
        return torch.zeros(len(ids), dtype=torch.long, device=ids.device)
    columns = torch.arange(past + ids.shape[1], device=ids.device)
    first = (attention_mask == 0).sum(dim=1)
    on_the_left = torch.equal(attention_mask.bool(), columns >= first[:, None])
    return first if on_the_left else None


def _paged_view(batch: PagedBatch, config: LlamaConfig) -> View:
    """Rows end in the same column; each begins where its padding does."""
    first = torch.tensor([batch.kv_len - end for _, _, end in batch.spans])
    strides = (0, config.head_dim, config.num_kv_heads * config.head_dim)
    keys, values = list(batch.store.keys), list(batch.store.values)
    return View(keys, values, strides, batch.get_seq_length(), first, batch.slots.contiguous())

"""What `prefill` and `generate` accept: each wrong input is named before anything is computed."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache import KVCache, KVCacheProtocol, cache_length, require_empty, unseen_tokens
from kvlab.errors import CacheFull, InvalidArgument
from kvlab.model.llama import Llama

if TYPE_CHECKING:
    from transformers import Cache

CONTINUING = (None, "new_ids", "full_ids")


def token_tensor(model: Llama, input_ids: Tensor | Sequence[int]) -> Tensor:
    """Return token ids as (batch, tokens) on the model's device; a flat list is a batch of one."""
    try:
        ids = torch.as_tensor(input_ids)
    except (TypeError, ValueError, RuntimeError):
        rule = "must be token ids, (batch, tokens) or one flat list"
        raise InvalidArgument("input_ids", input_ids, rule) from None
    ids = ids[None] if ids.dim() == 1 else ids
    if ids.dim() != 2 or ids.shape[0] == 0:
        raise InvalidArgument("input_ids", tuple(ids.shape), "must be (batch, tokens)")
    if ids.shape[1] == 0:
        raise InvalidArgument("input_ids", tuple(ids.shape), "the prompt is empty: give 1 token")
    if ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
        raise InvalidArgument("input_ids", ids.dtype, "token ids are whole numbers")
    return ids.to(device=model.lm_head.weight.device, dtype=torch.long)


def check_cache(model: Llama, cache: object) -> None:
    """Refuse what is no cache, and a cache of ours made for another number of layers."""
    if cache is not None and not isinstance(cache, KVCacheProtocol):
        raise InvalidArgument("cache", cache, "must be the name of a cache, a cache or None")
    if isinstance(cache, KVCache) and len(cache.layers) != model.config.num_layers:
        rule = f"must be {model.config.num_layers}, the layers of the model"
        raise InvalidArgument("layers of the cache", len(cache.layers), rule)


def tokens_to_feed(
    model: Llama,
    input_ids: Tensor | Sequence[int],
    cache: "Cache | None",
    continuing: str | None,
) -> Tensor:
    """Return the ids that the cache has not seen; refuse a used cache unless told to go on."""
    ids = token_tensor(model, input_ids)
    if continuing not in CONTINUING:
        raise InvalidArgument("continuing", continuing, f"must be one of {CONTINUING}")
    if continuing is None:
        require_empty(cache)
        return ids
    return unseen_tokens(cache, **{continuing: ids})


def check_mask(attention_mask: Tensor | None, ids: Tensor, held: int) -> Tensor | None:
    """Return the padding mask, (batch, held + tokens) of 0 and 1, on the device of `ids`.

    Its last column must be real tokens: a batch is padded on the left.
    """
    if attention_mask is None:
        return None
    try:
        given = torch.as_tensor(attention_mask, device=ids.device)
    except (TypeError, ValueError, RuntimeError):
        rule = "must be (batch, tokens) of 0 (padding) and 1"
        raise InvalidArgument("attention_mask", attention_mask, rule) from None
    mask = given.long()
    expected = (len(ids), held + ids.shape[1])
    if tuple(mask.shape) != expected:
        raise InvalidArgument("attention_mask", tuple(mask.shape), f"its shape must be {expected}")
    neither = given[(given != 0) & (given != 1)].flatten().tolist()
    if neither:
        raise InvalidArgument("attention_mask", neither[0], "holds 0 (padding) and 1 only")
    if bool((mask[:, -1] == 0).any()):
        rule = "pad on the left: the last column must be 1"
        raise InvalidArgument("attention_mask", mask[:, -1].tolist(), rule)
    return mask


def check_capacity(model: Llama, ids: Tensor, max_new_tokens: int, cache: "Cache | None") -> int:
    """Return the positions that a run needs, P + N - 1; refuse what model or cache can't hold."""
    held, limit = cache_length(cache), model.config.max_seq_len
    needed = held + ids.shape[1] + max_new_tokens - 1
    if needed > limit:
        past = f"{held} held + " if held else ""
        said = f"{past}{ids.shape[1]} prompt + {max_new_tokens} new - 1 = {needed} positions"
        raise InvalidArgument("number of tokens", said, f"the model has {limit} positions")
    room = getattr(cache, "capacity", None)
    if room is not None and needed > room:
        raise CacheFull(f"cache of {room} tokens is too small: this run needs {needed}")
    return needed


def check_stop_ids(stop_ids: Iterable[int], vocab_size: int) -> frozenset[int]:
    """Return the stop tokens as a set of ids of the vocabulary."""
    try:
        stops = frozenset(whole_number("stop_ids", stop, minimum=0) for stop in stop_ids)
    except TypeError:
        raise InvalidArgument("stop_ids", stop_ids, "must be a list of token ids") from None
    if stops and max(stops) >= vocab_size:
        raise InvalidArgument("stop_ids", max(stops), f"token ids run from 0 to {vocab_size - 1}")
    return stops


def chunks(num_tokens: int, chunk_size: int | None, cache: "Cache | None") -> list[tuple[int, int]]:
    """Return (start, end) of each piece of a prompt of `num_tokens`.

    >>> chunks(7, None, None)
    [(0, 7)]
    """
    size = num_tokens if chunk_size is None else whole_number("chunk_size", chunk_size)
    if cache is None and size < num_tokens:
        rule = "a prompt in chunks needs a cache that keeps the earlier chunks"
        raise InvalidArgument("chunk_size", chunk_size, rule)
    return [(start, min(start + size, num_tokens)) for start in range(0, num_tokens, size)]

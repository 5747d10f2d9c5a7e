"""What can be done with any cache, ours or transformers': measure, shorten, undo, continue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from kvlab.cache.hf import Cache
from kvlab.cache.hf_caches import can_crop, fraction_filled, is_restorable
from kvlab.cache.lengths import token_count
from kvlab.cache.measure import storage_nbytes, tensors_of
from kvlab.errors import CacheInUse, InvalidArgument, Unsupported


def cache_length(cache: Cache | None) -> int:
    """Return the tokens a cache has seen; no cache has seen none.

    >>> cache_length(None)
    0
    """
    return 0 if cache is None else int(cache.get_seq_length())


def cache_nbytes(cache: Cache | None) -> int:
    """Return the bytes of the keys and values held, in our caches and in transformers'."""
    return 0 if cache is None else sum(map(_layer_nbytes, cache.layers))


def cache_reserved_nbytes(cache: Cache | None) -> int:
    """Return the bytes allocated, in our caches and in transformers'."""
    return 0 if cache is None else sum(map(storage_nbytes, cache.layers))


def _layer_nbytes(layer: Any) -> int:
    if hasattr(layer, "nbytes"):
        return layer.nbytes
    held, allocated = fraction_filled(layer)
    return sum(tensor.nbytes for tensor in tensors_of(layer)) * held // allocated


def truncate_to(cache: Cache, n: int) -> None:
    """Keep the first `n` tokens of a cache, ours or transformers'."""
    length = cache_length(cache)
    n = token_count(n, length)
    if not can_crop(cache):
        raise Unsupported(f"this {type(cache).__name__} cannot be shortened")
    cache.crop(n - length)


def require_empty(cache: Cache | None) -> None:
    """Refuse a cache that still holds an earlier prompt."""
    if (length := cache_length(cache)) > 0:
        raise CacheInUse(
            f"cache already holds {length} tokens; call cache.reset() for a new prompt,"
            " or continue from it with the new tokens only"
        )


def unseen_tokens(
    cache: Cache | None, *, new_ids: Tensor | None = None, full_ids: Tensor | None = None
) -> Tensor:
    """Return the tokens to feed next, told as the new ones alone or as the whole history.

    Both are (batch, tokens); give exactly one. `full_ids` must be longer than the cache.
    """
    if (new_ids is None) == (full_ids is None):
        raise InvalidArgument("new_ids", new_ids, "give either new_ids or full_ids")
    if new_ids is not None:
        return new_ids
    length, offered = cache_length(cache), full_ids.shape[-1]
    if offered <= length:
        rule = f"must be longer than the {length} tokens that the cache already holds"
        raise InvalidArgument("full_ids", f"{offered} tokens", rule)
    return full_ids[:, length:]


@contextmanager
def rollback(cache: Cache | None) -> Iterator[Cache | None]:
    """Put every layer back to where it was if anything, even Ctrl-C, ends the block early.

    No tensor is copied; the tensors that a growing layer replaces live until the block ends.
    A layer that had no tokens yet has none again.

    >>> import torch
    >>> from kvlab.cache import make_cache
    >>> cache, token = make_cache("growing", num_layers=2), torch.zeros(1, 1, 1, 4)
    >>> try:
    ...     with rollback(cache):
    ...         _ = cache.update(token, token, 0)
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(cache.get_seq_length())
    0
    """
    if cache is None:
        yield None
        return
    undo = [_undo_of(layer) for layer in cache.layers]
    needed = getattr(cache, "needed_by_rollback", [])
    needed.append(cache_length(cache))
    try:
        yield cache
    except BaseException:
        del cache.layers[len(undo) :]  # layers that transformers added on the way
        for restore, state in undo:
            restore(state)
        raise
    finally:
        needed.pop()


def _undo_of(layer: Any) -> tuple[Any, Any]:
    """Return (function, state): calling function(state) puts the layer back."""
    if hasattr(layer, "snapshot"):
        return layer.restore, layer.snapshot()
    if not is_restorable(layer):
        raise Unsupported(f"rollback: a {type(layer).__name__} overwrites what it would go back to")
    counters = {
        name: value.clone()
        for name, value in vars(layer).items()
        if isinstance(value, Tensor) and value.ndim == 0
    }
    return _restore_stock, (layer, dict(vars(layer)), counters)


def _restore_stock(state: tuple[Any, dict[str, object], dict[str, Tensor]]) -> None:
    layer, attributes, counters = state
    vars(layer).clear()
    vars(layer).update(attributes)
    for name, value in counters.items():
        getattr(layer, name).copy_(value)  # in place: compiled code keeps its address

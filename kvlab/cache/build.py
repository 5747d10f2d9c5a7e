"""Caches by name: what `--cache growing` on the command line and `cache="growing"` mean."""

from __future__ import annotations

import inspect
from difflib import get_close_matches

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.base import KVLayer
from kvlab.cache.container import KVCache
from kvlab.cache.contiguous import GrowingLayer, PreallocatedLayer
from kvlab.errors import InvalidArgument

# To add a cache: write its layer class in a file of its own, and name it here.
LAYER_KINDS: dict[str, type[KVLayer] | None] = {
    "none": None,
    "growing": GrowingLayer,
    "preallocated": PreallocatedLayer,
}
CACHE_NAMES = tuple(LAYER_KINDS)


def make_cache(
    name: str, *, num_layers: int, capacity: int | None = None, **options: object
) -> KVCache | None:
    """Return a new, empty cache, or None for "none".

    `capacity` is in tokens: needed by caches of fixed size, ignored by all others. `options` go
    to every layer. `InvalidArgument` for an unknown name or option, or a missing capacity.

    >>> make_cache("preallocated", num_layers=2, capacity=100).capacity
    100
    >>> make_cache("growin", num_layers=2)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: cache='growin': must be one of none, growing, preallocated; \
did you mean growing?
    """
    if not isinstance(name, str) or name not in LAYER_KINDS:
        raise InvalidArgument("cache", name, _known_names(name))
    whole_number("num_layers", num_layers)
    layer_kind = LAYER_KINDS[name]
    if layer_kind is None:
        return None
    accepted = inspect.signature(layer_kind).parameters
    for option in options:
        if option not in accepted:
            rule = f"the {name} cache takes {', '.join(accepted) or 'no options'}"
            raise InvalidArgument(option, options[option], rule)
    if "capacity" in accepted:
        if capacity is None:
            raise InvalidArgument(
                "capacity", capacity, f"the {name} cache needs its size in tokens"
            )
        options["capacity"] = capacity
    return KVCache(layer_kind(**options) for _ in range(num_layers))


def _known_names(name: object) -> str:
    known = f"must be one of {', '.join(LAYER_KINDS)}"
    close = get_close_matches(str(name).lower(), LAYER_KINDS, n=1)
    return f"{known}; did you mean {close[0]}?" if close else known

"""Caches by name: what `--cache growing` on the command line and `cache="growing"` mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.container import KVCache
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.cache.base import KVLayer

# To add a cache: write its layer class in a file of its own, and name it here, "module:name".
# The module is read when the cache is first asked for.
LAYER_KINDS: dict[str, str | None] = {
    "none": None,
    "growing": "contiguous:GrowingLayer",
    "preallocated": "contiguous:PreallocatedLayer",
    "fp8": "quantized:Fp8Layer",
    "fp8-e5m2": "quantized:Fp8E5M2Layer",
    "int8": "quantized:Int8Layer",
    "int4": "quantized:Int4Layer",
    "int2": "quantized:Int2Layer",
    "window": "eviction_scores:WindowLayer",
    "sinks": "eviction_scores:SinksLayer",
    "h2o": "eviction_observed:HeavyHitterLayer",
    "keynorm": "eviction_scores:KeyNormLayer",
    "keydiff": "eviction_scores:KeyDiffLayer",
    "expected": "eviction_observed:ExpectedLayer",
    "random": "eviction_scores:RandomLayer",
    "offloaded": "offloaded:OffloadedLayer",
    "paged": "paged_layer:PagedLayer",
}
CACHE_NAMES = tuple(LAYER_KINDS)

MOST_LAYERS = 10_000
"""No model has as many; without a bound a slip of the hand fills the memory with empty layers."""

NEEDED = {"capacity": "its size in tokens", "budget": "a budget, the tokens it may keep"}


def make_cache(
    name: str,
    *,
    num_layers: int,
    capacity: int | None = None,
    budgets: Sequence[int] | None = None,
    **options: object,
) -> KVCache | None:
    """Return a new, empty cache, or None for "none".

    `capacity` is in tokens: needed by caches of fixed size, ignored by all others. `budgets` gives
    every layer a budget of its own. `options` go to every layer; a `seed` becomes another one in
    each. `InvalidArgument` for an unknown name or option, or where a needed one is missing.

    >>> make_cache("preallocated", num_layers=2, capacity=100).capacity
    100
    >>> make_cache("growing", num_layers=2, nbits=4)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: nbits=4: the growing cache takes no options
    """
    if whole_number("num_layers", num_layers) > MOST_LAYERS:
        raise InvalidArgument("num_layers", num_layers, f"must be {MOST_LAYERS:,} or fewer")
    every = _per_layer(int(num_layers), budgets, options)
    every = [check_options(name, chosen, capacity=capacity) for chosen in every]
    if LAYER_KINDS[name] is None:
        return None
    layer_kind = _layer_kind(name)
    layers = [layer_kind(**chosen) for chosen in every]
    return getattr(layer_kind, "container", KVCache)(layers)


def layer_options(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the options of a cache's layers; `InvalidArgument` for a name that is none.

    >>> list(layer_options("preallocated"))
    ['capacity']
    """
    if not isinstance(name, str) or name not in LAYER_KINDS:
        raise InvalidArgument("cache", name, _known_names(name))
    return {} if LAYER_KINDS[name] is None else inspect.signature(_layer_kind(name)).parameters


def check_options(
    name: str, options: Mapping[str, object], *, capacity: int | None = None
) -> dict[str, object]:
    """Return all that a layer of this cache is made with; no layer is made yet.

    `InvalidArgument` for an option that the cache does not take, or a needed one that is missing.

    >>> check_options("window", {"budgt": 8})
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: budgt=8: the window cache takes budget, positions, inv_freq
    """
    accepted, given = layer_options(name), dict(options)
    for option, value in given.items():
        if option not in accepted:
            rule = f"the {name} cache takes {', '.join(accepted) or 'no options'}"
            raise InvalidArgument(option, value, rule)
    if "capacity" in accepted:
        given["capacity"] = capacity
    for option, parameter in accepted.items():
        if parameter.default is parameter.empty and given.get(option) is None:
            raise InvalidArgument(option, None, f"the {name} cache needs {NEEDED[option]}")
    return given


def _layer_kind(name: str) -> Callable[..., KVLayer]:
    module, attribute = LAYER_KINDS[name].split(":")
    return getattr(import_module(f"kvlab.cache.{module}"), attribute)


def _per_layer(
    num_layers: int, budgets: Sequence[int] | None, options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the options of each layer: the same, but for its budget and what it draws."""
    every = [dict(options) for _ in range(num_layers)]
    if options.get("seed") is not None:
        first = whole_number("seed", options["seed"], minimum=0) * num_layers
        for layer_idx, chosen in enumerate(every):
            chosen["seed"] = first + layer_idx  # no two seeds share a layer's draw
    if budgets is None:
        return every
    if options.get("budget") is not None:
        raise InvalidArgument("budgets", budgets, "give either budget or budgets")
    if not isinstance(budgets, Sequence) or len(budgets) != num_layers:
        rule = f"must be {num_layers} numbers of tokens, one a layer"
        raise InvalidArgument("budgets", budgets, rule)
    for chosen, budget in zip(every, budgets, strict=True):
        chosen["budget"] = budget
    return every


def _known_names(name: object) -> str:
    known = f"must be one of {', '.join(LAYER_KINDS)}"
    close = get_close_matches(str(name).lower(), LAYER_KINDS, n=1)
    return f"{known}; did you mean {close[0]}?" if close else known

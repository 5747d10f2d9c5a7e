"""The functions that questions and claims may name: a fixed list, nothing else is ever called.

Each is one of kvlab's own, or a line that puts two of them together. A module `claim_math*` of
this package adds those of its `ALL`.
"""

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import kvlab.course
from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flop_steps import attention_overtakes_at
from kvlab.arithmetic.flops import (
    flops_cached,
    flops_uncached,
    token_forwards_cached,
    token_forwards_uncached,
)
from kvlab.arithmetic.memory import kv_bytes, kv_bytes_per_token

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "token_forwards_cached": token_forwards_cached,
    "token_forwards_uncached": token_forwards_uncached,
    "kv_bytes_per_token": kv_bytes_per_token,
    "kv_bytes": kv_bytes,
}


def listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a function on the list under its own name."""
    FUNCTIONS[function.__name__] = function
    return function


for _module in iter_modules(kvlab.course.__path__):
    if _module.name.startswith("claim_math"):
        for _function in import_module(f"kvlab.course.{_module.name}").ALL:
            listed(_function)


@listed
def add(a: float, b: float) -> float:
    """Return a + b."""
    return a + b


@listed
def subtract(a: float, b: float) -> float:
    """Return a - b."""
    return a - b


@listed
def multiply(a: float, b: float) -> float:
    """Return a * b."""
    return a * b


@listed
def divide(a: float, b: float) -> float:
    """Return a / b, as an int when nothing is left over.

    >>> divide(6, 3), divide(1, 4)
    (2, 0.25)
    """
    exact = isinstance(a, int) and isinstance(b, int) and a % b == 0
    return a // b if exact else a / b


@listed
def power(base: int, exponent: int) -> int:
    """Return base ** exponent."""
    return base**exponent


@listed
def shape(dimensions: Sequence[int]) -> tuple[int, ...]:
    """Return a tensor's shape."""
    return tuple(dimensions)


@listed
def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the dot product of two vectors of equal length.

    >>> dot([1, 2], [3, 4])
    11
    """
    return sum(a * b for a, b in zip(left, right, strict=True))


@listed
def softmax_of_two(first: float, second: float) -> float:
    """Return the weight that softmax gives to the first of two scores.

    >>> softmax_of_two(1, 1)
    0.5
    """
    return 1 / (1 + math.exp(second - first))


@listed
def model_size(model: str, field: str) -> int:
    """Return one size of a model of the catalogue, such as "num_kv_heads"."""
    return int(getattr(model_shape(model), field))


@listed
def flops_total(model: str, prompt_tokens: int, new_tokens: int, cached: bool) -> int:
    """Return the FLOPs of a whole generation of a model of the catalogue."""
    count = flops_cached if cached else flops_uncached
    return count(model_shape(model), prompt_tokens, new_tokens).total


@listed
def attention_overtakes(model: str) -> int:
    """Return the first position whose attention costs more than its linear layers."""
    return attention_overtakes_at(model_shape(model))

"""What the checks of chapter 02 compare with: reference functions and known wrong ways."""

from typing import Any

import numpy as np

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flop_steps import forward_flops
from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.course.checks_01 import attend
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function
from kvlab.course.shape_answers import WrongShape, grade_shape

Array = np.ndarray


def token_forwards(P: int, N: int) -> tuple[int, int]:
    """Return (cached, uncached) token-forwards for P prompt tokens and N emitted ones.

    >>> token_forwards(2000, 1000)
    (2999, 2499500)
    """
    return token_forwards_cached(P, N), token_forwards_uncached(P, N)


_FORWARDS_WRONG = (
    WrongFunction(
        "last-token",
        lambda P, N: (P + N, token_forwards_uncached(P, N)),
        "Cached, off by one: the last emitted token is not fed back. Uncached is right.",
    ),
    WrongFunction(
        "one-pass-too-many",
        lambda P, N: (P + N - 1, N * P + N * (N + 1) // 2),
        "Uncached, one too many in each step: the first step passes P tokens, not P + 1.",
    ),
    WrongFunction(
        "off-by-one-twice",
        lambda P, N: (P + N, N * P + N * (N + 1) // 2),
        "Both are off by one: the prefill already emits the first token.",
    ),
    WrongFunction(
        "final-length",
        lambda P, N: (P + N - 1, N * (P + N)),
        "Uncached, each step is counted at the final length; early steps are shorter.",
    ),
    WrongFunction(
        "growth-forgotten",
        lambda P, N: (P + N - 1, N * P),
        "Uncached, each step is counted at the prompt's length; each is one longer than the last.",
    ),
    WrongFunction(
        "swapped",
        lambda P, N: (token_forwards_uncached(P, N), P + N - 1),
        "The two are swapped: return (cached, uncached).",
    ),
)


def grade_forwards(answer: object) -> Grade:
    """Grade exercise 02-a."""
    cases = [(1, 1), (6, 10), (20, 10), (2000, 1000), (5, 1)]
    return grade_function(answer, token_forwards, cases, _FORWARDS_WRONG)


def cached_step(x: Array, keys: Array, values: Array, weights: dict[str, Array]) -> Any:
    """One step of one head: x (hidden_size,), keys and values (kv_len, head_dim).

    Returns (output, keys, values) with one row more in each.
    """
    keys = np.vstack([keys, x @ weights["key"]])
    values = np.vstack([values, x @ weights["value"]])
    return attend(x @ weights["query"], keys, values), keys, values


def _stored_after(x: Array, keys: Array, values: Array, weights: dict[str, Array]) -> Any:
    _, new_keys, new_values = cached_step(x, keys, values, weights)
    return attend(x @ weights["query"], keys, values), new_keys, new_values


def _not_stored(x: Array, keys: Array, values: Array, weights: dict[str, Array]) -> Any:
    return cached_step(x, keys, values, weights)[0], keys, values


def _in_front(x: Array, keys: Array, values: Array, weights: dict[str, Array]) -> Any:
    output, *_ = cached_step(x, keys, values, weights)
    rows = (np.vstack([x @ weights[name], old]) for name, old in (("key", keys), ("value", values)))
    return output, *rows


def _swapped(x: Array, keys: Array, values: Array, weights: dict[str, Array]) -> Any:
    names = {"query": "query", "key": "value", "value": "key"}
    return cached_step(x, keys, values, {name: weights[other] for name, other in names.items()})


def _queries_as_keys(x: Array, keys: Array, values: Array, weights: dict[str, Array]) -> Any:
    return cached_step(x, keys, values, weights | {"key": weights["query"]})


_STEP_WRONG = (
    WrongFunction(
        "stored-after",
        _stored_after,
        "The new key and value are stored too late: a token attends to itself, so store them "
        "before the scores are taken.",
    ),
    WrongFunction(
        "not-stored",
        _not_stored,
        "The output is right, but the new rows are not returned: the next step will miss them.",
    ),
    WrongFunction(
        "in-front",
        _in_front,
        "The new rows are in front; they belong at the end, in the order of positions.",
    ),
    WrongFunction(
        "key-value-swapped", _swapped, "The projections of key and value changed places."
    ),
    WrongFunction(
        "query-as-key", _queries_as_keys, "The query is stored as the key; project with the key's."
    ),
)


def _step_cases() -> list[tuple[Any, ...]]:
    random = np.random.default_rng(5)
    weights = {name: random.normal(size=(6, 4)) for name in ("query", "key", "value")}
    sizes = (1, 3, 7)
    drawn = ([random.normal(size=s) for s in ((6,), (n, 4), (n, 4))] for n in sizes)
    return [(*arrays, weights) for arrays in drawn]


def grade_step(answer: object) -> Grade:
    """Grade exercise 02-b."""
    return grade_function(answer, cached_step, _step_cases(), _STEP_WRONG)


FIRST, LAST = 7193, 8192
"""The positions of exercise 02-c, counted from 1."""


def attention_flops(first: int = FIRST, last: int = LAST) -> int:
    """Return Llama 3.1 70B's attention FLOPs for tokens decoded at 1-based positions.

    >>> attention_flops(8192)
    21474836480
    """
    shape = model_shape("llama-3.1-70b")
    steps = (forward_flops(shape, q_len=1, cached_tokens=t - 1) for t in range(first, last + 1))
    return sum(step.attention for step in steps)


def grade_flops(answer: object) -> Grade:
    """Grade exercise 02-c."""
    shape, right = model_shape("llama-3.1-70b"), attention_flops()
    group, tokens = shape.queries_per_kv_head, LAST - FIRST + 1
    known = (
        ("kv-heads", right // group, "KV heads were counted; every query head does its own work."),
        ("half", right // 2, "Half: count scores and weighted sum, and 2 FLOPs a multiply-add."),
        ("quarter", right // 4, "A quarter: scores and weighted sum, and 2 FLOPs a multiply-add."),
        ("one-layer", right // shape.num_layers, "That is one layer; the model has more."),
        ("one-head", right // shape.num_heads, "That is one query head; each layer has more."),
        (
            "final-length",
            tokens * attention_flops(LAST),
            "That counts every token at the last position; the earlier ones see fewer keys.",
        ),
        (
            "first-length",
            tokens * attention_flops(FIRST, FIRST),
            "That counts every token at the first position; the later ones see more keys.",
        ),
        ("last-token-alone", attention_flops(LAST), "That is the last token alone, of 1,000."),
        (
            "all-queries",
            attention_flops(1, LAST),
            "With a cache the queries of positions 1 to 7,192 do not ask again.",
        ),
    )
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="FLOP", misconceptions=slips))


_LENGTH_AXES = ("forward passes", "decode steps", "positions in the cache")
_LENGTHS = (
    ("last-token", (10, 9, 16), "The last emitted token is not in the cache yet."),
    ("ten-decode-steps", (11, 10, 16), "The prefill emits the first token, so one step fewer."),
    ("prefill-emits-nothing", (10, 10, 16), "The prefill is a pass too, and emits a token."),
    ("prefill-not-counted", (9, 9, 15), "The prefill is a forward pass as well."),
    ("prompt-not-cached", (10, 9, 9), "The prompt's positions are in the cache too."),
)


def grade_lengths(answer: object) -> Grade:
    """Grade exercise 02-d."""
    return grade_shape(answer, (10, 9, 15), _LENGTH_AXES, [WrongShape(*row) for row in _LENGTHS])

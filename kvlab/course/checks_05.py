"""What the checks of chapter 05 compare with: reference functions and known wrong ways."""

import numpy as np
from numpy.typing import NDArray

from kvlab.arithmetic.ranks import heads_on_rank
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function

Weight = NDArray[np.float64]


def attention_parameters(hidden_size: int, num_heads: int, num_kv_heads: int, head_dim: int) -> int:
    """Return the parameters of the four projections of one layer, without biases.

    >>> attention_parameters(8192, 64, 8, 128)
    150994944
    """
    return 2 * hidden_size * (num_heads + num_kv_heads) * head_dim


_PARAMETERS_WRONG = (
    WrongFunction(
        "all-query-heads",
        lambda hidden, heads, kv_heads, head_dim: 4 * hidden * heads * head_dim,
        "That gives K and V a head for each query head; they have one for each KV head.",
    ),
    WrongFunction(
        "query-shrinks",
        lambda hidden, heads, kv_heads, head_dim: 4 * hidden * kv_heads * head_dim,
        "Queries and the output were shrunk, too; only K and V have fewer heads.",
    ),
    WrongFunction(
        "output-forgotten",
        lambda hidden, heads, kv_heads, head_dim: hidden * (heads + 2 * kv_heads) * head_dim,
        "The output projection is missing: it takes all query heads back to the hidden size.",
    ),
    WrongFunction(
        "one-of-two",
        lambda hidden, heads, kv_heads, head_dim: hidden * (2 * heads + kv_heads) * head_dim,
        "K or V is missing: each has its own projection.",
    ),
    WrongFunction(
        "keys-and-values-alone",
        lambda hidden, heads, kv_heads, head_dim: 2 * hidden * kv_heads * head_dim,
        "Those are the projections of K and V; Q and the output are asked for, too.",
    ),
    WrongFunction(
        "hidden-squared",
        lambda hidden, heads, kv_heads, head_dim: (
            2 * hidden * hidden + 2 * hidden * kv_heads * head_dim
        ),
        "Q and output were taken as hidden x hidden; heads x head_dim need not be hidden size.",
    ),
)
_PARAMETERS_CASES = [(8192, 64, 8, 128), (4096, 32, 32, 128), (2560, 32, 8, 128), (576, 9, 3, 64)]


def grade_parameters(answer: object) -> Grade:
    """Grade exercise 05-a."""
    return grade_function(answer, attention_parameters, _PARAMETERS_CASES, _PARAMETERS_WRONG)


def grade_on_a_rank(answer: object) -> Grade:
    """Grade exercise 05-b."""
    head = 2 * 94 * 128 * 2 // 1024
    known = (
        ("part-of-a-head", head / 2, "That is half a head: a rank keeps one or more whole heads."),
        ("not-split", 4 * head, "That is all four heads; a rank keeps those its queries read."),
        ("query-heads", 8 * head, "Query heads were counted; the cache holds KV heads."),
        ("keys-only", head / 4, "Half a head, and keys alone: check both."),
        ("one-layer", head / 94, "That is one layer; the model has 94."),
    )
    slips = tuple(Misconception(*row) for row in known)
    right = head * heads_on_rank(4, 8)
    return grade_number(answer, Target(right, unit="KiB", misconceptions=slips))


def pool(weight: Weight, num_kv_heads: int, head_dim: int) -> Weight:
    """Return a K or V projection (heads * head_dim, hidden) whose neighbouring heads are averaged.

    >>> pool(np.array([[1.0], [3.0], [5.0], [9.0]]), 2, 1).tolist()
    [[2.0], [7.0]]
    """
    heads = weight.reshape(num_kv_heads, -1, head_dim, weight.shape[1])
    return heads.mean(axis=1).reshape(-1, weight.shape[1])


def _strided(weight: Weight, num_kv_heads: int, head_dim: int) -> Weight:
    heads = weight.reshape(-1, num_kv_heads, head_dim, weight.shape[1])
    return heads.mean(axis=0).reshape(-1, weight.shape[1])


def _rows(weight: Weight, num_kv_heads: int, head_dim: int) -> Weight:
    return weight.reshape(num_kv_heads * head_dim, -1, weight.shape[1]).mean(axis=1)


def _summed(weight: Weight, num_kv_heads: int, head_dim: int) -> Weight:
    return pool(weight, num_kv_heads, head_dim) * (len(weight) // (num_kv_heads * head_dim))


def _first(weight: Weight, num_kv_heads: int, head_dim: int) -> Weight:
    heads = weight.reshape(num_kv_heads, -1, head_dim, weight.shape[1])
    return heads[:, 0].reshape(-1, weight.shape[1])


def _kept(weight: Weight, num_kv_heads: int, head_dim: int) -> Weight:
    return weight[: num_kv_heads * head_dim]


_POOL_WRONG = (
    WrongFunction(
        "far-apart",
        _strided,
        "Heads that stand far apart were averaged; query heads that share a KV head are "
        "neighbours, so their old KV heads are, too.",
    ),
    WrongFunction(
        "rows",
        _rows,
        "Rows beside each other were averaged; they are different numbers of one head.",
    ),
    WrongFunction(
        "summed", _summed, "That is the sum; scores would grow with the size of the group."
    ),
    WrongFunction(
        "first-of-each", _first, "One head of each group was kept and the others dropped."
    ),
    WrongFunction("first-heads", _kept, "The first heads were kept and the others dropped."),
)


def _pool_cases() -> list[tuple[Weight, int, int]]:
    random = np.random.default_rng(5)
    sizes = [(8, 2, 4, 6), (4, 1, 3, 5), (6, 3, 2, 4), (4, 4, 2, 3)]
    return [(random.normal(size=(h * d, n)), kv, d) for h, kv, d, n in sizes]


def grade_pool(answer: object) -> Grade:
    """Grade exercise 05-c."""
    return grade_function(answer, pool, _pool_cases(), _POOL_WRONG)

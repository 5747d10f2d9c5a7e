"""What the checks of chapter 01 compare with: reference functions and known wrong ways."""

import numpy as np

from kvlab.course.grading import Grade
from kvlab.course.guarded import WrongFunction, grade_function
from kvlab.course.shape_answers import WrongShape
from kvlab.course.shape_answers import grade_shape as grade_sizes

Array = np.ndarray


def softmax(scores: Array) -> Array:
    """Return weights that add up to 1 along the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attend(query: Array, keys: Array, values: Array) -> Array:
    """Attention of one query (head_dim,) over keys and values (kv_len, head_dim).

    >>> attend(np.zeros(2), np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [0.5, 0.5]
    """
    return softmax(keys @ query / np.sqrt(len(query))) @ values


def _vectors() -> list[tuple[Array, Array, Array]]:
    """Queries, keys and values to try: one, three and eight positions; a large score too."""
    random = np.random.default_rng(11)
    sizes = ((1, 4), (3, 4), (8, 6), (5, 2))
    drawn = [[random.normal(size=s) for s in ((d,), (n, d), (n, d))] for n, d in sizes]
    return [tuple(arrays) for arrays in drawn]


def _unnormalised(query: Array, keys: Array, values: Array) -> Array:
    return np.exp(keys @ query / np.sqrt(len(query))) @ values


_ATTEND_WRONG = (
    WrongFunction(
        "scale-forgotten",
        lambda q, k, v: softmax(k @ q) @ v,
        "The scores are not scaled: divide them by the square root of head_dim.",
    ),
    WrongFunction(
        "scale-without-root",
        lambda q, k, v: softmax(k @ q / len(q)) @ v,
        "The scores are divided by head_dim; it is its square root.",
    ),
    WrongFunction(
        "not-normalised",
        _unnormalised,
        "The weights do not add up to 1: divide by their sum.",
    ),
    WrongFunction(
        "keys-mixed",
        lambda q, k, v: softmax(k @ q / np.sqrt(len(q))) @ k,
        "The weights are right, but they mix the keys; the values are what is mixed.",
    ),
    WrongFunction(
        "self-left-out",
        lambda q, k, v: attend(q, k[:-1], v[:-1]) if len(k) > 1 else 0 * q,
        "The newest position is left out: a token attends to itself too.",
    ),
    WrongFunction(
        "no-softmax",
        lambda q, k, v: (k @ q / np.sqrt(len(q))) @ v,
        "The scores are used as weights; softmax turns scores into weights.",
    ),
)


def grade_attend(answer: object) -> Grade:
    """Grade exercise 01-a."""
    return grade_function(answer, attend, _vectors(), _ATTEND_WRONG)


def new_positions(q_len: int, cached_tokens: int) -> list[int]:
    """Return the 0-based positions of new tokens when the cache holds `cached_tokens`.

    >>> new_positions(2, cached_tokens=5)
    [5, 6]
    """
    return list(range(cached_tokens, cached_tokens + q_len))


_POSITIONS_WRONG = (
    WrongFunction(
        "offset-forgotten",
        lambda q, c: list(range(q)),
        "They start at 0 again: the new tokens come after those in the cache.",
    ),
    WrongFunction(
        "one-too-far",
        lambda q, c: list(range(c + 1, c + 1 + q)),
        "One too far: the cached tokens hold positions 0 to `cached_tokens - 1`.",
    ),
    WrongFunction(
        "one-too-early",
        lambda q, c: list(range(c - 1, c - 1 + q)),
        "One too early: the last cached token already has that position.",
    ),
    WrongFunction(
        "whole-text",
        lambda q, c: list(range(c + q)),
        "Those are the positions of the whole text; only the new tokens are asked for.",
    ),
)


def grade_positions(answer: object) -> Grade:
    """Grade exercise 01-b."""
    cases = [(1, 0), (7, 0), (1, 7), (3, 7), (2, 100)]
    return grade_function(answer, new_positions, cases, _POSITIONS_WRONG)


_AXES = ("batch", "KV heads", "positions", "head_dim")
_SHAPES = (
    ("query-heads", (1, 9, 16, 64), "Keys are stored for each KV head, not for each query head."),
    ("last-token", (1, 3, 17, 64), "Off by one: the last emitted token is not in the cache yet."),
    ("prompt-only", (1, 3, 12, 64), "Emitted tokens that were consumed are in the cache as well."),
    ("hidden-over-kv", (1, 3, 16, 192), "head_dim is not hidden_size over KV heads."),
    ("hidden-size", (1, 3, 16, 576), "A key of one head has head_dim numbers, not hidden_size."),
    (
        "layers",
        (30, 3, 16, 64),
        "First comes the batch; each layer has a tensor of its own.",
    ),
    ("positions-first", (1, 16, 3, 64), "Heads come before positions in this layout."),
)


def grade_shape(answer: object) -> Grade:
    """Grade exercise 01-c."""
    return grade_sizes(answer, (1, 3, 16, 64), _AXES, [WrongShape(*row) for row in _SHAPES])


def causal_mask(q_len: int, cached_tokens: int) -> Array:
    """Return which keys (columns) each new query (row) may see, as True.

    >>> causal_mask(2, 1).tolist()
    [[True, True, False], [True, True, True]]
    """
    columns = np.arange(cached_tokens + q_len)
    return columns <= cached_tokens + np.arange(q_len)[:, None]


_MASK_WRONG = (
    WrongFunction(
        "square",
        lambda q, c: np.tril(np.ones((q, q), dtype=bool)),
        "A square mask has no columns for the keys in the cache: it is q_len by cached + q_len.",
    ),
    WrongFunction(
        "offset-forgotten",
        lambda q, c: np.tril(np.ones((q, c + q), dtype=bool)),
        "The form is right, but row 0 sees key 0 alone: shift the triangle by the cached tokens.",
    ),
    WrongFunction(
        "self-left-out",
        lambda q, c: np.arange(c + q) < c + np.arange(q)[:, None],
        "Each query sees itself too: use <= and not <.",
    ),
    WrongFunction(
        "sees-future",
        lambda q, c: np.ones((q, c + q), dtype=bool),
        "With several new tokens the first must not see the later ones.",
    ),
    WrongFunction(
        "inverted",
        lambda q, c: ~causal_mask(q, c),
        "Turned round: True is asked for where a query may look.",
    ),
)


def grade_mask(answer: object) -> Grade:
    """Grade exercise 01-d."""
    return grade_function(answer, causal_mask, [(1, 0), (4, 0), (1, 5), (3, 5)], _MASK_WRONG)

"""The toy: eight positions, the letters A to H, one attention layer with every number in sight.

It says the letter that follows the last one, and says so through attention alone: there is no way
around it (no residual path, no MLP, no norm). numpy only. Runs and mistakes: `toy_runs.py`,
`toy_mistakes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from kvlab.errors import CacheFull, CacheInUse, InvalidArgument
from kvlab.model.toy_weights import (
    LETTERS,
    NUM_POSITIONS,
    TOTAL_HEAD_SIZE,
    Floats,
    ToyWeights,
    letter_ids,
    toy_weights,
)

Bools = NDArray[np.bool_]


def chunk_mask(*, past: int, new: int, num_slots: int | None = None) -> Bools:
    """Return what each new token may see, (new, num_slots); num_slots is past + new if None.

    The rows are those of the last `new` tokens: row i sees past + i + 1 slots.

    >>> chunk_mask(past=4, new=1, num_slots=8).astype(int).tolist()
    [[1, 1, 1, 1, 1, 0, 0, 0]]
    >>> chunk_mask(past=2, new=3).sum(axis=1).tolist()
    [3, 4, 5]
    """
    slots = np.arange(past + new if num_slots is None else num_slots)
    return slots <= np.arange(past, past + new)[:, None]


class ToyCache:
    """Keys and values of the tokens consumed so far; a slot not written yet holds NaN.

    >>> cache = ToyCache(num_heads=2)
    >>> cache.length, cache.keys.shape  # (num_heads, positions, head_dim)
    (0, (2, 8, 4))
    """

    def __init__(self, num_heads: int = 1) -> None:
        shape = (num_heads, NUM_POSITIONS, TOTAL_HEAD_SIZE // num_heads)
        self.keys, self.values, self.length = np.empty(shape), np.empty(shape), 0
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.keys[:], self.values[:], self.length = np.nan, np.nan, 0

    def write(self, keys: Floats, values: Floats) -> tuple[int, ...]:
        """Append (num_heads, new, head_dim) and return the rows written; a full cache is kept."""
        end = self.length + keys.shape[1]
        if end > NUM_POSITIONS:
            raise CacheFull(f"the toy has {NUM_POSITIONS} positions: {end} tokens do not fit")
        rows = tuple(range(self.length, end))
        self.keys[:, rows], self.values[:, rows], self.length = keys, values, end
        return rows


@dataclass(frozen=True, eq=False)
class ToyStep:
    """All that happened to one token; arrays are read-only copies.

    With a cache, `rows_read` were there before this forward and `rows_written` are new. Keys and
    values hold every slot up to the end of the forward, `weights` is 0 where the mask hides one.
    """

    letter: str
    position: int
    embedding: Floats  # (hidden_size,)
    q: Floats  # (num_heads, head_dim), like k and v: this token's own
    k: Floats
    v: Floats
    keys: Floats  # (num_heads, kv_len, head_dim), like values: what attention looked at
    values: Floats
    visible: Bools  # (kv_len,)
    scores: Floats  # (num_heads, kv_len), before the mask
    weights: Floats  # (num_heads, kv_len)
    head_outputs: Floats  # (num_heads, head_dim)
    concatenated: Floats  # (num_heads * head_dim,)
    output: Floats  # (4,)
    logits: Floats  # (8,)
    probabilities: Floats  # (8,)
    prediction: str
    rows_read: tuple[int, ...] = ()
    rows_written: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.setflags(write=False)
                object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Toy:
    """The model; `num_heads` cuts the same weights into one head of 8 numbers or two of 4.

    >>> toy, cache = Toy(), ToyCache()
    >>> steps = toy.prefill(cache, "ABCD")
    >>> steps[-1].weights.round(2), steps[-1].prediction
    (array([[0.04, 0.04, 0.18, 0.73]]), 'E')
    >>> toy.step(cache, "E").rows_written
    (4,)
    """

    num_heads: int = 1
    w: ToyWeights = field(default_factory=toy_weights)

    def __post_init__(self) -> None:
        if self.num_heads not in (1, 2):
            raise InvalidArgument("num_heads", self.num_heads, "the toy has 1 head or 2")

    def prefill(self, cache: ToyCache, prompt: str) -> tuple[ToyStep, ...]:
        """Consume a whole prompt in one forward; one `ToyStep` a token. The cache must be empty."""
        if cache.length:
            raise CacheInUse(f"the cache already holds {cache.length} tokens: reset it first")
        return self.forward(letter_ids(prompt), cache)

    def step(self, cache: ToyCache, letter: str) -> ToyStep:
        """Consume one letter: project it alone, read the older rows, write one."""
        return self.forward(letter_ids(letter), cache)[-1]

    def forward(
        self,
        ids: Sequence[int],
        cache: ToyCache,
        *,
        positions: Sequence[int] | None = None,
        visible: Bools | None = None,
    ) -> tuple[ToyStep, ...]:
        """Run new tokens behind those in the cache; `positions` and `visible` overrule the rules.

        Without them a token's position is its slot, and it sees all slots up to its own.
        """
        past, new = cache.length, len(ids)
        if past + new > NUM_POSITIONS:
            raise CacheFull(f"the toy has {NUM_POSITIONS} positions: {past + new} do not fit")
        positions = range(past, past + new) if positions is None else positions
        visible = chunk_mask(past=past, new=new) if visible is None else visible
        if not set(positions) <= set(range(NUM_POSITIONS)):
            raise InvalidArgument("positions", list(positions), "must be 0 to 7")
        embedded = self.w.letters[list(ids)] + self.w.positions[list(positions)]
        q, k, v = (self._split(embedded @ w) for w in (self.w.w_q, self.w.w_k, self.w.w_v))
        written, read = cache.write(k, v), tuple(range(past))
        keys, values = cache.keys[:, : past + new], cache.values[:, : past + new]
        return tuple(
            ToyStep(
                LETTERS[ids[i]], positions[i], embedded[i], q[:, i], k[:, i], v[:, i],
                keys, values, visible[i], *self._attend(q[:, i], keys, values, visible[i]),
                rows_read=read, rows_written=written,
            )
            for i in range(new)
        )  # fmt: skip

    def _split(self, rows: Floats) -> Floats:
        """(new, total_head_size) to (num_heads, new, head_dim)."""
        return rows.reshape(len(rows), self.num_heads, -1).transpose(1, 0, 2)

    def _attend(self, q: Floats, keys: Floats, values: Floats, visible: Bools) -> tuple:
        """Return scores, weights, and all that follows up to the letter predicted."""
        scores = (keys * q[:, None]).sum(-1) / np.sqrt(q.shape[-1])  # (num_heads, kv_len)
        weights = np.stack([softmax(row, visible) for row in scores])
        mixed = (weights[..., None] * values)[:, visible].sum(axis=1)  # (num_heads, head_dim)
        concatenated = mixed.reshape(-1)
        output = concatenated @ self.w.w_o
        logits = output @ self.w.unembedding
        chances = softmax(logits)
        letter = LETTERS[int(logits.argmax())]
        return scores, weights, mixed, concatenated, output, logits, chances, letter


def softmax(scores: Floats, visible: Bools | None = None) -> Floats:
    """Turn scores into weights that sum to 1; hidden ones get 0, and all get 0 if none is visible.

    >>> softmax(np.array([1.0, 1.0, 9.0]), np.array([True, True, False]))
    array([0.5, 0.5, 0. ])
    """
    weights = np.zeros_like(scores)
    visible = np.ones(scores.shape, dtype=bool) if visible is None else visible
    if visible.any():
        powers = np.exp(scores[visible] - scores[visible].max())
        weights[visible] = powers / powers.sum()
    return weights

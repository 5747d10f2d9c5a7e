"""Four mistakes made on purpose: each runs, raises nothing, and gives a wrong letter.

They are the negative controls of the toy: if one of them came out right, the toy would not be
using what it claims to use.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvlab.model.toy import Toy, ToyCache, ToyStep, chunk_mask
from kvlab.model.toy_weights import letter_ids, toy_weights


@dataclass(frozen=True)
class ToyMistake:
    """The same letter consumed rightly and wrongly, and what was done wrong in one sentence."""

    name: str
    what: str
    right: ToyStep
    wrong: ToyStep

    @property
    def first_wrong(self) -> str:
        """The first thing in the order of the step that came out wrong, as `ToyStep` names it."""
        stages = ("embedding", "keys", "values", "visible", "weights", "output")
        pairs = ((name, getattr(self.right, name), getattr(self.wrong, name)) for name in stages)
        return next(name for name, right, wrong in pairs if not np.array_equal(right, wrong))


def wrong_position_offset(letters: str = "ABCD", *, num_heads: int = 1) -> ToyMistake:
    """Count the new token's position from 0 again, forgetting the tokens in the cache.

    >>> mistake = wrong_position_offset()
    >>> mistake.right.prediction, mistake.wrong.prediction
    ('E', 'D')
    """
    toy, ids = Toy(num_heads), letter_ids(letters)
    wrong = toy.forward(ids[-1:], _prefilled(toy, letters[:-1]), positions=[0])[-1]
    what = f"{letters[-1]} was given position 0 although {len(ids) - 1} letters came before it"
    return ToyMistake("wrong position offset", what, _right(toy, letters), wrong)


def square_mask_on_one_query(letters: str = "ABCD", *, num_heads: int = 1) -> ToyMistake:
    """Cut the mask of one query from the top left of a square, so that it sees the first key only.

    >>> mistake = square_mask_on_one_query()
    >>> mistake.right.prediction, mistake.wrong.prediction
    ('E', 'B')
    """
    toy, ids = Toy(num_heads), letter_ids(letters)
    top_left = chunk_mask(past=0, new=1, num_slots=len(ids))
    wrong = toy.forward(ids[-1:], _prefilled(toy, letters[:-1]), visible=top_left)[-1]
    what = f"{letters[-1]} used row 0 of the mask instead of row {len(ids) - 1}"
    return ToyMistake("square mask on one query", what, _right(toy, letters), wrong)


def left_padding_without_positions(
    letters: str = "ABCD", *, pad: int = 4, num_heads: int = 1
) -> ToyMistake:
    """Prefill a left-padded row with slots for positions, then decode with the row's own count.

    Padding is hidden rightly in both; only the positions of the prefill are wrong.

    >>> mistake = left_padding_without_positions()
    >>> mistake.right.prediction, mistake.wrong.prediction
    ('E', 'D')
    """
    toy, ids = Toy(num_heads), letter_ids(letters)
    own = [max(slot - pad, 0) for slot in range(pad + len(ids))]
    right, wrong = (
        _padded(toy, ids, pad, [*prefill, own[-1]]) for prefill in (own[:-1], range(len(own) - 1))
    )
    what = f"the prompt stood in positions {pad} and up, {letters[-1]} in position {own[-1]}"
    return ToyMistake("left padding without positions", what, right, wrong)


def values_set_to_zero(letters: str = "ABCD", *, num_heads: int = 1) -> ToyMistake:
    """Erase what the values carry: all letters become equally likely.

    >>> float(values_set_to_zero().wrong.probabilities.max())
    0.125
    """
    toy = Toy(num_heads)
    weights = toy_weights()
    empty = Toy(num_heads, replace(weights, w_v=np.zeros_like(weights.w_v)))
    what = "every value was 0, so attention had nothing to hand on"
    return ToyMistake("values set to zero", what, _right(toy, letters), _right(empty, letters))


MISTAKES = (
    wrong_position_offset,
    square_mask_on_one_query,
    left_padding_without_positions,
    values_set_to_zero,
)


def _prefilled(toy: Toy, letters: str) -> ToyCache:
    cache = ToyCache(toy.num_heads)
    toy.prefill(cache, letters)
    return cache


def _right(toy: Toy, letters: str) -> ToyStep:
    return toy.step(_prefilled(toy, letters[:-1]), letters[-1])


def _padded(toy: Toy, ids: list[int], pad: int, positions: list[int]) -> ToyStep:
    """Prefill padding and all letters but the last, then consume the last."""
    cache, tokens = ToyCache(toy.num_heads), [0] * pad + ids  # which letter pads is all one
    past = len(tokens) - 1
    visible = chunk_mask(past=0, new=len(tokens))
    visible[:, :pad] &= np.arange(len(tokens))[:, None] < pad
    toy.forward(tokens[:-1], cache, positions=positions[:-1], visible=visible[:past, :past])
    return toy.forward(tokens[-1:], cache, positions=positions[-1:], visible=visible[past:])[-1]

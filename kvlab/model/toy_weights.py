"""The weights of the toy, made by hand: whole numbers and halves, small enough to print.

Four numbers hold eight letters: A to D are +1 in place 0 to 3, E to H are -1 there. The letter
after X then is X moved one place on, and a move past the last place flips the sign: after D (+1 in
place 3) comes E (-1 in place 0), after H comes A again. One matrix does that move, W_v.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvlab.errors import InvalidArgument

Floats = NDArray[np.float64]
LETTERS = "ABCDEFGH"
NUM_POSITIONS = 8
HIDDEN_SIZE = 6  # four numbers of the letter, the position, and a constant 1
TOTAL_HEAD_SIZE = 8  # one head of 8 or two heads of 4
RECENCY = (1.5, 0.5)  # how much a later key is preferred, in each half
NEXT_LETTER = [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [-1, 0, 0, 0]]  # A to B, B to C, ...
QUESTIONS = [[1, 1, 1], [1, 1, -1], [1, -1, -1], [1, -1, 1]]  # three yes/no answers of A, B, C, D


@dataclass(frozen=True, eq=False)
class ToyWeights:
    """Every number of the toy; a token's vector is a row, so a projection is `row @ matrix`.

    >>> toy_weights().letters[3]  # D
    array([0., 0., 0., 1., 0., 0.])
    """

    letters: Floats  # (8, hidden_size)
    positions: Floats  # (8, hidden_size)
    w_q: Floats  # (hidden_size, total_head_size)
    w_k: Floats  # (hidden_size, total_head_size)
    w_v: Floats  # (hidden_size, total_head_size)
    w_o: Floats  # (total_head_size, 4)
    unembedding: Floats  # (4, 8): the letters again, one a column


def toy_weights() -> ToyWeights:
    """Build the weights; read with two heads, each head owns one half of the columns.

    A query asks two things: which key is late (its 1 meets the key's position), and which key gives
    the same three answers about its letter. Half 0 cares more for late keys than half 1.

    >>> toy_weights().w_k[4]  # the row of the position
    array([1.5, 0. , 0. , 0. , 0.5, 0. , 0. , 0. ])
    """
    code = np.vstack([np.eye(4), -np.eye(4)])  # (8 letters, 4)
    questions, move = np.array(QUESTIONS, dtype=float), np.array(NEXT_LETTER, dtype=float)
    letters = np.hstack([code, np.zeros((8, 2))])
    positions = np.zeros((NUM_POSITIONS, HIDDEN_SIZE))
    positions[:, 4], positions[:, 5] = np.arange(NUM_POSITIONS), 1
    w_q, w_k, w_v = (np.zeros((HIDDEN_SIZE, TOTAL_HEAD_SIZE)) for _ in range(3))
    for half, recency in enumerate(RECENCY):
        first = 4 * half
        w_q[5, first], w_k[4, first] = 1, recency
        w_q[:4, first + 1 : first + 4] = questions / 2
        w_k[:4, first + 1 : first + 4] = questions
        w_v[:4, first : first + 4] = move
    w_o = 2 * np.vstack([np.eye(4), np.eye(4)])  # both halves vote
    made = (letters, positions, w_q, w_k, w_v, w_o, code.T.copy())
    for matrix in made:
        matrix.setflags(write=False)
    return ToyWeights(*made)


def letter_ids(letters: str) -> list[int]:
    """Return 0 for A to 7 for H; refuses an empty text, other letters, and more than 8.

    >>> letter_ids("DAD")
    [3, 0, 3]
    """
    if not isinstance(letters, str) or not letters or set(letters) - set(LETTERS):
        raise InvalidArgument("letters", letters, "must be one or more of the letters A to H")
    if len(letters) > NUM_POSITIONS:
        raise InvalidArgument("letters", letters, f"the toy has {NUM_POSITIONS} positions")
    return [LETTERS.index(letter) for letter in letters]

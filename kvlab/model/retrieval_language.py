"""The synthetic retrieval language: facts stated early among filler, asked for later.

A sequence is a start token, a context and questions. The context holds each fact, a name followed
by its place, somewhere among random filler words; a question is `where`, a name, and the answer.
Every question asks another fact, so the answer stands in the context once and nowhere else.
Places are drawn independently of all else, so whoever has lost a fact is right once in 64 times.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.retrieval_words import (
    BOS_ID,
    FILLER,
    FIRST_FILLER,
    FIRST_NAME,
    FIRST_PLACE,
    NAMES,
    PLACES,
    WHERE_ID,
)

FACT_TOKENS, QUESTION_TOKENS = 2, 3
CHANCE = 1 / len(PLACES)
"""The share of right answers of a model that has lost the facts."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of one length, with the places of all that matters in them.

    input_ids: (num_sequences, seq_len). fact_positions: (num_sequences, num_facts), where each
    fact's name stands; its place follows. asked: (num_sequences, num_questions), which fact each
    question asks. answer_positions: (num_questions,), the same in every sequence; the model says
    its answer one position earlier. context_len: tokens before the first question.
    """

    input_ids: Ids
    fact_positions: Ids
    asked: Ids
    answer_positions: Ids
    context_len: int

    @property
    def answers(self) -> Ids:
        """Return the right answers as token ids, (num_sequences, num_questions)."""
        return self.input_ids[:, self.answer_positions]


def min_seq_len(num_facts: int, num_questions: int | None = None) -> int:
    """Return the length of a sequence that has no filler at all.

    >>> min_seq_len(32)
    161
    """
    num_questions = num_facts if num_questions is None else num_questions
    return 1 + FACT_TOKENS * num_facts + QUESTION_TOKENS * num_questions


def make_sequences(
    num_sequences: int,
    *,
    seq_len: int = 512,
    num_facts: int = 32,
    num_questions: int | None = None,
    num_names: int = len(NAMES),
    seed: int | tuple[int, ...] = 0,
) -> Sequences:
    """Return fresh sequences, the same for the same arguments on every machine.

    `num_questions` of the facts are asked, by default all, in random order. Names come from the
    first `num_names`. Raises `InvalidArgument` for counts that do not fit together.

    >>> batch = make_sequences(1, seq_len=16, num_facts=2, seed=2)
    >>> batch.context_len, batch.answer_positions.tolist()
    (10, [12, 15])
    """
    num_questions = num_facts if num_questions is None else num_questions
    _check(num_sequences, seq_len, num_facts, num_questions, num_names)
    random = np.random.default_rng(_checked_seed(seed))
    size, context_len = (num_sequences, num_facts), seq_len - QUESTION_TOKENS * num_questions
    ids = np.full((num_sequences, seq_len), BOS_ID, np.int64)
    ids[:, 1:] = FIRST_FILLER + random.integers(len(FILLER), size=(num_sequences, seq_len - 1))
    names = FIRST_NAME + _shuffled(random, num_sequences, num_names)[:, :num_facts]
    places = FIRST_PLACE + random.integers(len(PLACES), size=size)
    positions = _fact_positions(random, num_sequences, num_facts, context_len)
    asked = _shuffled(random, num_sequences, num_facts)[:, :num_questions]
    np.put_along_axis(ids, positions, names, axis=1)
    np.put_along_axis(ids, positions + 1, places, axis=1)
    answer_positions = context_len + QUESTION_TOKENS * np.arange(num_questions) + 2
    ids[:, answer_positions - 2] = WHERE_ID
    ids[:, answer_positions - 1] = np.take_along_axis(names, asked, axis=1)
    ids[:, answer_positions] = np.take_along_axis(places, asked, axis=1)
    return Sequences(ids, positions, asked, answer_positions, context_len)


def _shuffled(random: np.random.Generator, rows: int, count: int) -> Ids:
    """Return 0 to count - 1 in an order of its own for each row, (rows, count)."""
    return random.random((rows, count)).argsort(axis=1)


def _fact_positions(
    random: np.random.Generator, rows: int, num_facts: int, context_len: int
) -> Ids:
    """Return where facts start, (rows, num_facts), ascending: facts and filler words shuffled."""
    units = context_len - 1 - num_facts * (FACT_TOKENS - 1)  # a fact is one unit, so is a filler
    is_fact = _shuffled(random, rows, units) < num_facts
    starts = 1 + np.arange(units) + is_fact.cumsum(axis=1) - is_fact  # facts before it, 1 more each
    return starts[is_fact].reshape(rows, num_facts)


def _check(rows: int, seq_len: int, num_facts: int, num_questions: int, num_names: int) -> None:
    counts = {"num_sequences": rows, "seq_len": seq_len, "num_facts": num_facts}
    for argument, value in (counts | {"num_questions": num_questions}).items():
        whole_number(argument, value)
    if whole_number("num_names", num_names) > len(NAMES):
        raise InvalidArgument("num_names", num_names, f"the language has {len(NAMES)} names")
    if num_facts > num_names:
        raise InvalidArgument("num_facts", num_facts, f"there are {num_names} names to tell apart")
    if num_questions > num_facts:
        rule = f"each fact is asked once at most, and there are {num_facts}"
        raise InvalidArgument("num_questions", num_questions, rule)
    least = min_seq_len(num_facts, num_questions)
    if seq_len < least:
        rule = f"{num_facts} facts and {num_questions} questions need {least} tokens or more"
        raise InvalidArgument("seq_len", seq_len, rule)


def _checked_seed(seed: int | tuple[int, ...]) -> list[int]:
    numbers = seed if isinstance(seed, tuple) else (seed,)
    return [whole_number("seed", number, minimum=0) for number in numbers]

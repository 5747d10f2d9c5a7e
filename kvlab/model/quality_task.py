"""What a model reads while a cache's quality is measured, and which answers are graded.

The models of the retrieval language get fresh sequences of facts and questions, every other model
our own prose. Left out: how the reading is done (`quality_logits.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.retrieval import BATCH_TOKENS
from kvlab.model.retrieval_language import QUESTION_TOKENS, make_sequences, min_seq_len
from kvlab.model.sample_text import prose_ids, speaks_retrieval

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

FACTS, FACT_TOKENS_READ, PROSE_TOKENS = 32, 512, 256
SEQUENCES, PROSE_ROWS = 16, 4
FIRST_SEED = 1_000_000
"""Seeds below a million are left to training; seed 0 of a measurement is this one."""

MOST_SEQUENCES = 10_000


def count_rows(num_sequences: int) -> int:
    """Return a number of sequences that can be measured within the hour, or refuse it."""
    if whole_number("num_sequences", num_sequences) > MOST_SEQUENCES:
        raise InvalidArgument(
            "num_sequences", num_sequences, f"must be {MOST_SEQUENCES:,} or fewer"
        )
    return num_sequences


@dataclass(frozen=True, eq=False)
class Task:
    """Rows of equal length: the first `context_len` tokens in one go, the rest token by token.

    input_ids: (rows, tokens). answer_positions: where right answers stand, None for prose, where
    every token read alone is graded. `seed` drew the sequences; prose needs none.
    """

    input_ids: Tensor
    context_len: int
    answer_positions: Tensor | None = None
    seed: int | None = None

    @property
    def tokens(self) -> int:
        """Return the tokens of a row, all of them in the cache at the end."""
        return self.input_ids.shape[1]

    @property
    def steps(self) -> int:
        """Return the tokens that a row reads one by one, each step through the cache."""
        return self.tokens - self.context_len

    @property
    def batches(self) -> int:
        """Return how many batches the rows make."""
        return len(self.input_ids.split(self._batch_rows))

    @property
    def _batch_rows(self) -> int:
        return max(1, BATCH_TOKENS // self.tokens)

    def __iter__(self) -> Iterator["Task"]:
        """Yield the task in pieces of few enough rows to read at once."""
        for ids in self.input_ids.split(self._batch_rows):
            yield replace(self, input_ids=ids)

    def graded(self) -> tuple[Tensor, Tensor]:
        """Return (steps whose logits are graded, the right tokens there (rows, graded steps))."""
        if self.answer_positions is not None:
            positions = self.answer_positions
        else:  # the first is said by the context alone: it has not met the cache yet
            positions = torch.arange(self.context_len + 1, self.tokens)
        targets = self.input_ids[:, positions.to(self.input_ids.device)]
        return positions - 1 - self.context_len, targets


def make_task(
    loaded: "LoadedModel",
    *,
    tokens: int | None = None,
    facts: int | None = None,
    seed: int = 0,
    num_sequences: int | None = None,
) -> Task:
    """Return what this model shall read: 512 tokens with 32 facts, or 256 tokens of prose.

    The same arguments give the same task. `InvalidArgument` for facts in prose, or for counts that
    do not fit together.
    """
    whole_number("seed", seed, minimum=0)
    if not speaks_retrieval(loaded):
        if facts is not None:
            rule = "facts are for the retrieval language; this model reads prose"
            raise InvalidArgument("facts", facts, rule)
        return _prose_task(loaded, PROSE_TOKENS if tokens is None else tokens, num_sequences)
    facts = whole_number("facts", FACTS if facts is None else facts)
    tokens = whole_number("tokens", FACT_TOKENS_READ if tokens is None else tokens)
    if tokens < min_seq_len(facts):
        rule = f"{facts} facts and their questions need {min_seq_len(facts)} tokens or more"
        raise InvalidArgument("tokens", tokens, rule)
    _check_length(loaded, tokens)
    rows = SEQUENCES if num_sequences is None else count_rows(num_sequences)
    return _fact_task(loaded, tokens, facts, seed, rows)


def _fact_task(loaded: "LoadedModel", tokens: int, facts: int, seed: int, rows: int) -> Task:
    """Draw the sequences batch by batch, exactly as `retrieval.recall` does."""
    at_once = max(1, BATCH_TOKENS // tokens)
    batches = [
        make_sequences(
            min(at_once, rows - start),
            seq_len=tokens,
            num_facts=facts,
            seed=(FIRST_SEED + seed, start),
        )
        for start in range(0, rows, at_once)
    ]
    ids = torch.cat([torch.from_numpy(batch.input_ids) for batch in batches])
    answers = torch.from_numpy(batches[0].answer_positions)
    context_len = tokens - QUESTION_TOKENS * facts
    return Task(ids.to(loaded.device), context_len, answers, seed)


def _prose_task(loaded: "LoadedModel", tokens: int, rows: int | None) -> Task:
    if whole_number("tokens", tokens) < 8:
        raise InvalidArgument("tokens", tokens, "must be 8 or more: 6 of context, 2 read alone")
    _check_length(loaded, tokens)
    rows = PROSE_ROWS if rows is None else count_rows(rows)
    return Task(prose_ids(loaded, num_tokens=tokens, rows=rows), tokens * 3 // 4)


def _check_length(loaded: "LoadedModel", tokens: int) -> None:
    longest = loaded.model.config.max_seq_len
    if tokens > longest:
        raise InvalidArgument("tokens", tokens, f"{loaded.name} has {longest:,} positions")


def budget_tokens(budget: int | str, tokens: int) -> int:
    """Return a budget in tokens, given as such or as a percentage of `tokens`, rounded down.

    >>> budget_tokens("25%", 512), budget_tokens("12 %", 512), budget_tokens("64", 512)
    (128, 61, 64)
    """
    if not isinstance(budget, str):
        return whole_number("budget", budget)
    text = budget.strip()
    try:
        share = Fraction(text.removesuffix("%").strip())
        exact = share * tokens / 100 if text.endswith("%") else share
    except (ValueError, ZeroDivisionError):
        exact = None
    if text.endswith("%") and exact is not None and exact > tokens:
        raise InvalidArgument("budget", budget, "is more than all tokens: 100% or less")
    if exact is None or not (text.endswith("%") or exact.denominator == 1) or exact < 1:
        rule = "must be 1 token or more, as a whole number, or as a percentage such as 25%"
        raise InvalidArgument("budget", budget, rule)
    return int(exact)

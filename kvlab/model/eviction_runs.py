"""Every eviction policy at every budget on one task: which positions survive, what is answered.

The reading and the grading are those of `quality.Bench`; what is added is a look into the cache
at the moment when the context has been read and the first question comes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kvlab.errors import InvalidArgument
from kvlab.model.quality import Bench, MakeCache
from kvlab.model.quality_logits import Reading, Tally, Watch, read
from kvlab.model.quality_task import Task, budget_tokens
from kvlab.model.retrieval_language import FACT_TOKENS
from kvlab.model.retrieval_tokenizer import render
from kvlab.model.retrieval_words import FIRST_NAME, FIRST_PLACE

POLICIES = ("window", "sinks", "random", "keynorm", "h2o", "expected")
PERCENTS = (100, 75, 50, 25, 12, 6)

Kept = tuple[tuple[tuple[int, ...], ...], ...]
"""Positions by layer and KV head: `kept[layer][head]`."""


@dataclass(frozen=True, eq=False)
class EvictionRun:
    """One policy at one budget, `percent` % of the tokens read, which is `budget` tokens.

    `recall`, `loss` (nats) and `cache_bytes` are those of `Quality`, over all texts. The rest is
    of the first text: `kept`, the positions that were held when its context of `context_len`
    tokens had been read; `answered`, whether the question for each fact was answered right;
    `fact_positions`, where each fact's name stands, ascending; `facts`, each as people read it.
    """

    policy: str
    percent: int
    budget: int
    recall: float
    loss: float
    cache_bytes: int
    kept: Kept
    answered: tuple[bool, ...]
    fact_positions: tuple[int, ...]
    facts: tuple[str, ...]
    context_len: int


def eviction_runs(
    bench: Bench,
    policies: Sequence[str] = POLICIES,
    percents: Sequence[int] = PERCENTS,
) -> Iterator[EvictionRun]:
    """Yield a run for each policy and budget, the policies in turn; the model must know facts.

    >>> bench = Bench("tiny", tokens=64, facts=4, num_sequences=2)
    >>> [run] = eviction_runs(bench, ["window"], [50])
    >>> run.budget, run.kept[0][0][0], run.kept[0][0][-1]
    (32, 20, 51)
    """
    if bench.task.answer_positions is None:
        raise InvalidArgument("bench", bench.loaded.name, "must read facts, as tiny does")
    for policy in policies:
        for percent in percents:
            budget = budget_tokens(f"{percent}%", bench.task.tokens)
            make = bench.maker(policy, budget=budget)
            yield _run(bench, make, policy=policy, percent=percent, budget=budget)


def _run(bench: Bench, make: MakeCache, *, policy: str, percent: int, budget: int) -> EvictionRun:
    tally, first, kept, held = Tally(), None, (), 0
    for part, full in zip(bench.task, bench.full(), strict=True):
        cache = make()
        look = _Look(cache)
        reading = read(bench.loaded.model, part, cache, look.watch)
        tally.add(part, full.logits, reading.logits)
        if first is None:
            first, kept, held = _answered(part, reading), look.kept, reading.cache_bytes
    places, answered = first or ((), ())
    ids = bench.task.input_ids[0].tolist()
    return EvictionRun(
        policy=policy,
        percent=percent,
        budget=budget,
        recall=tally.right / tally.graded,
        loss=tally.loss / tally.graded,
        cache_bytes=held,
        kept=kept,
        answered=answered,
        fact_positions=places,
        facts=tuple(render(ids[at : at + FACT_TOKENS]) for at in places),
        context_len=bench.task.context_len,
    )


class _Look:
    """Notes once, after the first pass of the model, what the first row's cache holds."""

    def __init__(self, cache: object) -> None:
        self.cache, self.kept = cache, ()

    @property
    def watch(self) -> Watch:
        """Return what a reading calls after each pass."""
        return self._note

    def _note(self) -> None:
        if not self.kept:
            layers = (layer.kept_positions()[0] for layer in self.cache.layers)
            self.kept = tuple(tuple(map(tuple, heads.tolist())) for heads in layers)


def _answered(part: Task, reading: Reading) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return where the first row's facts stand, and whether each was answered right."""
    steps, targets = part.graded()
    right = reading.logits[0, steps].argmax(-1) == targets[0]
    ids = part.input_ids[0]
    places = _fact_positions(ids[: part.context_len])
    asked = ids[part.answer_positions - 1]  # the name in each question
    by_name = dict(zip(asked.tolist(), right.tolist(), strict=True))
    return tuple(places), tuple(by_name[int(ids[at])] for at in places)


def _fact_positions(context: Tensor) -> list[int]:
    is_name = (context >= FIRST_NAME) & (context < FIRST_PLACE)
    return torch.nonzero(is_name)[:, 0].tolist()

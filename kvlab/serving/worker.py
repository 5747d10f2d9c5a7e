"""Who carries out a plan: a worker returns the tokens and the seconds. This one has no model.

The other one, with the real Llama, is in `llama_worker`.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Protocol

from kvlab.serving.plan import StepPlan
from kvlab.serving.request import Request
from kvlab.serving.sequence import Sequence
from kvlab.serving.step_clock import StepClock


class Worker(Protocol):
    """Carries out one plan after the other."""

    def run(self, plan: StepPlan) -> tuple[Items[int | None] | None, float]:
        """Return a token for each of `plan.emitting` (None: not known), and the seconds taken."""
        ...


class ClockWorker:
    """Computes nothing and says how long it would have taken; replays tokens that are known."""

    def __init__(self, clock: StepClock) -> None:
        self.clock = clock

    def run(self, plan: StepPlan) -> tuple[Items[int | None] | None, float]:
        """Return the tokens of an earlier run, where a request has them, and the least time."""
        return replayed(plan), price(self.clock, plan)


def price(clock: StepClock, plan: StepPlan) -> float:
    """Return the seconds that a clock says for a plan that is not completed yet."""
    load = plan.load()
    if clock.needs_spans:
        load.spans = plan.spans()
    return clock.seconds(load)


def replayed(plan: StepPlan) -> list[int | None] | None:
    """Return the tokens that requests bring along; None where no request brings any."""
    if all(seq.request.written_ids is None for seq in plan.emitting):
        return None
    return [known_token(seq) for seq in plan.emitting]


def known_token(seq: Sequence) -> int | None:
    """Return the next token of a sequence as an earlier run wrote it; None beyond its end."""
    written = seq.request.written_ids
    if written is None or len(written[seq.sample]) <= seq.num_emitted:
        return None
    return written[seq.sample][seq.num_emitted]


def as_written(request: Request, answers: Mapping[tuple[int, int], Items[int]]) -> Request:
    """Return a request that brings along what each (request_id, sample) wrote in an earlier run.

    >>> as_written(Request(1, 5, 2), {(1, 0): [8, 9]}).written_ids
    ([8, 9],)
    """
    samples = range(request.num_samples)
    return replace(
        request, written_ids=tuple(answers.get((request.request_id, s), ()) for s in samples)
    )

"""Requests that are lengths and no more, column by column, and what is told of serving them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvlab.serving.limits import Limits
from kvlab.serving.request import Request
from kvlab.serving.simulator import simulate
from kvlab.serving.step_clock import StepClock
from kvlab.serving.watch import Look, Watch


class Traffic(NamedTuple):
    """Requests of one sample, in the order of arrival; none shares anything with another.

    times: seconds at which they arrive. prompts, answers: tokens. stated: the most tokens that an
    answer may have, as its user said; none is longer.

    >>> next(Traffic([0.0], [5], [7], [9]).requests()).peak_tokens
    13
    """

    times: Sequence[float]
    prompts: Sequence[int]
    answers: Sequence[int]
    stated: Sequence[int]

    def requests(self) -> Iterator[Request]:
        """Yield the requests one by one, numbered from 0."""
        for index, (seconds, prompt, answer, stated) in enumerate(zip(*self, strict=True)):
            yield Request(
                index, prompt, stated, arrival_seconds=seconds, output_tokens=min(answer, stated)
            )


@dataclass(frozen=True)
class Outcome:
    """What is known of a run at its end, under the names of its `metrics` and its `counts`."""

    looks: list[Look]
    requests_finished: int
    requests_refused: int
    requests_outgrown: int
    sustained_batch: float
    tokens_per_second: float
    recomputed_tokens: int
    swapped_out_blocks: int


def scheduled_run(
    traffic: Traffic, clock: StepClock, *, num_blocks: int, limits: Limits, max_looks: int
) -> Outcome:
    """Serve the requests with the scheduler itself, looked at by `Watch(max_looks)`.

    >>> from kvlab.arithmetic.plan_deployment import Deployment
    >>> from kvlab.arithmetic.roofline import Device
    >>> clock = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
    >>> one = Traffic([0.0], [512], [100], [100])
    >>> scheduled_run(one, clock, num_blocks=99, limits=Limits(), max_looks=9).requests_finished
    1
    """
    watch = Watch(max_looks=max_looks)
    loop = simulate(traffic.requests(), clock, num_blocks=num_blocks, limits=limits, on_step=watch)
    counts, metrics = loop.scheduler.counts, loop.metrics
    return Outcome(
        watch.looks,
        metrics.requests_finished,
        metrics.requests["refused"],
        metrics.requests["outgrown"],
        metrics.sustained_batch,
        metrics.tokens_per_second,
        counts.recomputed_tokens,
        counts.swapped_out_blocks,
    )

"""One traffic twice: a piece for the longest answer allowed for each request, or small blocks.

A reservation of `max_seq_len` slots is a block of that size, and no request needs two. So one
scheduler and one clock serve both, and nothing but the allocator differs. Left out: how a kernel
copes with scattered blocks, and batching by requests in place of steps, which older servers had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.errors import InvalidArgument
from kvlab.serving.limits import Limits
from kvlab.serving.loop import ServingLoop
from kvlab.serving.request import Request
from kvlab.serving.sequence import FINISHED
from kvlab.serving.sequence import Sequence as Answer
from kvlab.serving.simulator import make_loop
from kvlab.serving.step_clock import StepClock


@dataclass(frozen=True, slots=True)
class Served:
    """What one allocator made of a traffic.

    wasted_share: of the slots taken, those without a token, over the time of all steps.
    seconds_per_token: arrival to end over the tokens of the answer, the mean of all answers.
    """

    block_size: int
    num_blocks: int
    wasted_share: float
    sustained_batch: float
    tokens_per_second: float
    seconds_per_token: float
    preemptions: int
    finished: int
    refused: int


class _Meter:
    """Slots taken and slots filled, weighted by time, and how long every answer took."""

    def __init__(self) -> None:
        self.taken = self.filled = self.last = 0.0
        self.per_token: list[float] = []
        self.loop: ServingLoop | None = None

    def saw_step(self, loop: ServingLoop) -> None:
        """Weigh what is taken and filled after a step by the seconds that it took."""
        busy = loop.metrics.busy_seconds  # the time between requests counts for nobody
        seconds, self.last = busy - self.last, busy
        scheduler = loop.scheduler
        self.taken += seconds * scheduler.manager.num_used * scheduler.manager.block_size
        self.filled += seconds * sum(seq.num_computed for seq in scheduler.running)

    def saw_end(self, seq: Answer) -> None:
        """Note the seconds of a complete answer for each of its tokens."""
        if self.loop is not None and seq.end_reason in FINISHED:
            waited = self.loop.now - seq.request.arrival_seconds
            self.per_token.append(waited / seq.num_emitted)


def serve(
    requests: Iterable[Request],
    deployment: Deployment,
    device: Device,
    *,
    num_slots: int,
    block_size: int,
    max_seq_len: int,
) -> Served:
    """Serve a traffic from `num_slots` slots in blocks; `block_size=max_seq_len` is one piece each.

    Requests that may grow past `max_seq_len` are refused, whichever the allocator.

    >>> from kvlab.serving.workloads import make_requests
    >>> one, h100 = Deployment.of("llama-2-13b"), Device.of("H100")
    >>> same = {"num_slots": 8192, "max_seq_len": 2048}
    >>> for size in (2048, 16):
    ...     made = make_requests(20, prompt_tokens=100, output_tokens=50)
    ...     print(round(serve(made, one, h100, block_size=size, **same).sustained_batch, 1))
    4.0
    20.0
    """
    if num_slots < max_seq_len:
        rule = f"must hold one sequence of {max_seq_len} at least"
        raise InvalidArgument("num_slots", num_slots, rule)
    meter, clock = _Meter(), StepClock(deployment, device, block_size=block_size)
    meter.loop = loop = make_loop(
        requests, clock, num_blocks=num_slots // block_size, limits=Limits(max_seq_len=max_seq_len),
        prefix_caching=False, skips=False, on_step=meter.saw_step, on_end=meter.saw_end,
    )  # fmt: skip
    metrics, times = loop.run(), meter.per_token
    return Served(
        block_size=block_size,
        num_blocks=num_slots // block_size,
        wasted_share=1 - meter.filled / meter.taken if meter.taken else 0.0,
        sustained_batch=metrics.sustained_batch,
        tokens_per_second=metrics.tokens_per_second,
        seconds_per_token=sum(times) / len(times) if times else 0.0,
        preemptions=loop.scheduler.counts.preemptions,
        finished=metrics.requests_finished,
        refused=metrics.requests["refused"],
    )


def most_at(
    seconds_per_token: float, rates: Sequence[float], served: Callable[[float], Served]
) -> tuple[float, Served] | None:
    """Return the last of the rising `rates` at which the mean time per token is kept, and what
    was served; None where the first one misses it already.

    >>> def made(rate):
    ...     return Served(16, 1, 0.0, rate, rate, rate / 10, 0, 1, 0)
    >>> most_at(0.25, [1, 2, 3], made)[0]
    2
    """
    kept = None
    for rate in rates:
        if (got := served(rate)).seconds_per_token > seconds_per_token:
            break
        kept = rate, got
    return kept

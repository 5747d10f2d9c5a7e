"""Thousands of requests in seconds: the scheduler of the engine, with a clock in place of a model.

Times are the roofline's lower bounds (`step_clock`); the schedule is the real one. Left out: the
time of the scheduler itself, of sampling, and of talk between ranks.
"""

from collections.abc import Callable, Iterable

from kvlab.paging.block_manager import BlockManager
from kvlab.serving.events import Observer
from kvlab.serving.limits import Limits
from kvlab.serving.loop import FollowUp, ServingLoop
from kvlab.serving.request import Request
from kvlab.serving.scheduler import Scheduler
from kvlab.serving.step_clock import StepClock
from kvlab.serving.worker import ClockWorker


def simulate(
    requests: Iterable[Request],
    clock: StepClock,
    *,
    num_blocks: int,
    limits: Limits | None = None,
    prefix_caching: bool = True,
    follow_up: FollowUp | None = None,
    observer: Observer | None = None,
    on_step: Callable[[ServingLoop], None] | None = None,
    skips: bool = True,
) -> ServingLoop:
    """Serve all requests and return the loop, with its `metrics` and its scheduler's `counts`.

    The pool has `num_blocks` blocks of the clock's `block_size`. `skips=False` takes every step
    by itself: the same schedule, slower.

    >>> from kvlab.arithmetic.plan_deployment import Deployment
    >>> from kvlab.arithmetic.roofline import Device
    >>> from kvlab.serving.workloads import make_requests
    >>> clock = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
    >>> served = simulate(make_requests(8, prompt_tokens=512, output_tokens=100), clock,
    ...                   num_blocks=1000)
    >>> served.metrics.requests_finished, served.scheduler.counts.steps, round(served.now, 2)
    (8, 100, 0.55)
    """
    loop = make_loop(
        requests, clock, num_blocks=num_blocks, limits=limits, prefix_caching=prefix_caching,
        follow_up=follow_up, observer=observer, on_step=on_step, skips=skips,
    )  # fmt: skip
    loop.run()
    return loop


def make_loop(
    requests: Iterable[Request],
    clock: StepClock,
    *,
    num_blocks: int,
    limits: Limits | None = None,
    prefix_caching: bool = True,
    observer: Observer | None = None,
    **options: object,
) -> ServingLoop:
    """Return the loop of `simulate` before its first step, to be taken step by step."""
    manager = BlockManager(num_blocks, clock.block_size, prefix_caching=prefix_caching)
    scheduler = Scheduler(manager, limits, observer=observer)
    return ServingLoop(scheduler, ClockWorker(clock), requests, **options)  # type: ignore[arg-type]

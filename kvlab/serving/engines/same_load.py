"""The same requests through our own scheduler, with the pool and the limits of an engine's plan.

Only the schedule is compared: who waits, who gives way, what is found. The clock is any machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.serving.engines.vllm import DTYPES, VllmPlan
from kvlab.serving.limits import Limits
from kvlab.serving.loop import ServingLoop
from kvlab.serving.request import Request
from kvlab.serving.simulator import simulate
from kvlab.serving.step_clock import StepClock

if TYPE_CHECKING:
    from kvlab.model.llama import Llama

ANY_MACHINE = "H100"


def our_schedule(
    plan: VllmPlan,
    requests: Iterable[Request],
    *,
    at_once: int | None = None,
    on_step: Callable[[ServingLoop], None] | None = None,
) -> ServingLoop:
    """Return our simulator's run of `requests` in the pool that `plan` makes.

    The block that vLLM holds back is not in the pool. `at_once` is how many requests are open, as
    a client that waits for each answer has them. Raises `InvalidArgument` for a model whose shape
    is not in the catalogue.

    >>> from kvlab.serving.workloads import with_system_prompt
    >>> asked = with_system_prompt(3, system_tokens=512, user_tokens=40, output_tokens=8)
    >>> served = our_schedule(VllmPlan("smollm2"), asked, at_once=1)
    >>> served.scheduler.counts.prefix_hit_tokens, served.scheduler.counts.preemptions
    (1024, 0)
    """
    model = Deployment.of(
        plan.model, weights_dtype=DTYPES[plan.dtype], cache_dtype=plan.stored_dtype
    )
    clock = StepClock(model, Device.of(ANY_MACHINE), block_size=plan.block_size)
    return simulate(
        requests,
        clock,
        num_blocks=plan.predict().usable_blocks,
        limits=_limits(plan, at_once),
        prefix_caching=plan.prefix_caching,
        on_step=on_step,
    )


def our_engine(model: Llama, plan: VllmPlan, requests: Iterable[Request]) -> ServingLoop:
    """Return our engine's run of `requests` in the same pool: a real model, this machine's seconds.

    A request is let in when the time of the steps has passed its arrival; where nothing is to be
    done, the time jumps to the next one. Raises `InvalidArgument` for requests without tokens.

    >>> from kvlab.model.load import load_model
    >>> from kvlab.serving.request import prompt
    >>> tiny = load_model("tiny", device="cpu").model
    >>> served = our_engine(tiny, VllmPlan("smollm2"), [prompt(0, [5, 6, 7], 4)])
    >>> served.metrics.peak_running, served.now > 0
    (1, True)
    """
    from kvlab.serving.engine import Engine  # torch comes with it

    engine = Engine(
        model,
        num_blocks=plan.predict().usable_blocks,
        block_size=plan.block_size,
        limits=_limits(plan, None),
        prefix_caching=plan.prefix_caching,
    )
    loop = engine.start(requests, {})
    loop.run()
    return loop


def _limits(plan: VllmPlan, at_once: int | None) -> Limits:
    """Return the rules of a plan's scheduler, with at most `at_once` requests running."""
    return Limits(
        max_batched_tokens=plan.max_batched_tokens,
        max_running=min(plan.max_running, at_once or plan.max_running),
        max_seq_len=plan.max_model_len,
    )

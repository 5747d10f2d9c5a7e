"""The same requests through our own scheduler, with the pool and the limits of an engine's plan.

Only the schedule is compared: who waits, who gives way, what is found. The clock is any machine's.
"""

from collections.abc import Callable, Iterable

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.serving.engines.vllm import VllmPlan
from kvlab.serving.limits import Limits
from kvlab.serving.loop import ServingLoop
from kvlab.serving.request import Request
from kvlab.serving.simulator import simulate
from kvlab.serving.step_clock import StepClock

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
    limits = Limits(
        max_batched_tokens=plan.max_batched_tokens,
        max_running=min(plan.max_running, at_once or plan.max_running),
        max_seq_len=plan.max_model_len,
    )
    clock = StepClock(Deployment.of(plan.model), Device.of(ANY_MACHINE), block_size=plan.block_size)
    return simulate(
        requests,
        clock,
        num_blocks=plan.predict().usable_blocks,
        limits=limits,
        prefix_caching=plan.prefix_caching,
        on_step=on_step,
    )

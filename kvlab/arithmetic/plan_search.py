"""The other way round: a context and users in, GPUs out.

Tried: tp up to one machine, then pipeline stages of whole machines, and replicas of either. Left
out: expert parallelism, and stages inside a machine.
"""

from collections.abc import Iterator
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.plan_deployment import ModelSource
from kvlab.arithmetic.plan_inputs import PlanInputs, plan_inputs
from kvlab.arithmetic.plan_notes import refusal
from kvlab.arithmetic.plan_timing import what_binds
from kvlab.arithmetic.sizing import Plan, make_plan
from kvlab.errors import KvlabError

GPUS_PER_MACHINE = 8
MOST_STAGES = 16


def gpus_needed(
    model: ModelSource,
    *,
    context: int,
    users: int,
    gpus_per_machine: int = GPUS_PER_MACHINE,
    **inputs: Any,
) -> Plan:
    """Return the plan with the fewest GPUs that serves `users` requests at their peak, in time.

    Keywords are those of `sizing.plan` without the numbers of GPUs. Among plans with as many GPUs,
    the one with fewest pipeline stages is taken, then fewest replicas. Raises `KvlabError` when
    no layout tried serves one request.

    >>> found = gpus_needed("llama-3.1-70b", gpu="H100", context=131_072, users=8)
    >>> found.inputs.gpus, found.inputs.deployment.tp, found.fits
    (8, 8, True)
    """
    wanted = whole_number("users", users)
    most = whole_number("gpus_per_machine", gpus_per_machine)
    start = plan_inputs(model, context=context, users=wanted, **inputs)
    found = [plan for plan in _plans(start, wanted, most) if plan is not None]
    if not found:
        said = f"tp up to {most} and {MOST_STAGES} pipeline stages"
        raise KvlabError(f"no layout serves one such request in time: {said} were tried")
    return min(found, key=_order)


def _order(plan: Plan) -> tuple[int, int, int]:
    return plan.inputs.gpus, plan.inputs.deployment.pp, plan.inputs.dp


def _plans(start: PlanInputs, users: int, most: int) -> Iterator[Plan | None]:
    layers = max(start.deployment.model.num_layers, 1)
    heads = start.deployment.model.num_heads
    ranks = [n for n in range(1, most + 1) if heads is None or heads % n == 0]
    layouts = [(tp, 1) for tp in ranks]
    layouts += [(ranks[-1], pp) for pp in range(2, min(MOST_STAGES, layers) + 1)]
    for tp, pp in layouts:
        inputs = start.change(tp=tp, pp=pp, dp=1, users=None)
        if not refusal(inputs):
            yield _enough_replicas(inputs, users)


def _enough_replicas(inputs: PlanInputs, users: int) -> Plan | None:
    served = what_binds(make_plan(inputs)).requests
    if served == 0:
        return None
    replicas = 1 if served is None else -(-users // served)
    return make_plan(inputs.change(dp=replicas, users=users))

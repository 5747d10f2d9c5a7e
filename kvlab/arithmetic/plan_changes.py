"""What to change next: every change of one step, evaluated and ranked by what it costs.

The order of cost is a judgement, said in `COSTS`; money is left out, it differs by place and day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from kvlab.arithmetic.dtypes import cache_dtype
from kvlab.arithmetic.gpus import Gpu, load_gpus
from kvlab.arithmetic.plan_inputs import PlanInputs
from kvlab.arithmetic.plan_notes import refusal
from kvlab.arithmetic.plan_timing import Binding, what_binds
from kvlab.arithmetic.sizing import Plan, make_plan
from kvlab.errors import InvalidArgument

SETTING, LAYOUT, CACHE_FORMAT, WEIGHTS_FORMAT, PROMISE, MORE_GPUS, OTHER_GPU = range(7)
COSTS = (
    "a setting: restart the engine",
    "another layout of the same GPUs: restart, and measure the latency again",
    "a narrower cache: measure the quality",
    "narrower weights: a quantised checkpoint, and measure the quality",
    "a smaller promise: shorter requests for the users",
    "more GPUs",
    "another kind of GPU",
)
"""What each cost means, cheapest first; the index is `Change.cost`."""

MOST_UTILIZATION = Fraction(95, 100)


@dataclass(frozen=True)
class Change:
    """One change of one step, and the plan that it gives. Counts are over all replicas."""

    name: str
    cost: int
    before: Plan
    after: Plan
    binding_before: Binding
    binding_after: Binding

    @property
    def extra_gpus(self) -> int:
        """GPUs that it adds."""
        return self.after.inputs.gpus - self.before.inputs.gpus

    @property
    def says_cost(self) -> str:
        """What it costs, in words."""
        return COSTS[self.cost] + (f": {self.extra_gpus} more" if self.extra_gpus else "")

    @property
    def gained_requests(self) -> int:
        """Full-length requests admitted more than before, in whole ones; it may be negative."""
        return (self.after.total_admission_bound or 0) - (self.before.total_admission_bound or 0)

    @property
    def gained_bytes(self) -> int:
        """How much less is missing for the users; a gain even where they do not fit yet."""
        return self.before.short_bytes - self.after.short_bytes

    @property
    def served_after(self) -> int:
        """Requests over all replicas that fit and are in time then; 10**18 where any number is."""
        return _served(self.after, self.binding_after)

    @property
    def helps(self) -> bool:
        """Whether more requests fit and are in time, or less is missing."""
        before, after = _served(self.before, self.binding_before), self.served_after
        return after > before or (after == before and self.gained_bytes > 0)


def next_changes(plan: Plan) -> tuple[Change, ...]:
    """Return every change of one step that helps, the cheapest first, then the largest gain.

    >>> from kvlab.arithmetic.sizing import plan
    >>> changes = next_changes(plan("llama-3.1-70b", gpu="H100", gpus=8, context=131_072))
    >>> changes[0].name, changes[0].gained_requests
    ('cache in fp8', 11)
    """
    now = what_binds(plan)
    changes = (
        Change(name, cost, plan, after, now, what_binds(after))
        for name, cost, after in _candidates(plan)
    )
    useful = [change for change in changes if change.helps]
    useful.sort(key=lambda c: (c.cost, c.extra_gpus, -c.gained_requests, -c.gained_bytes))
    return tuple(useful)


def cheapest_change(plan: Plan, changes: tuple[Change, ...] | None = None) -> Change | None:
    """Return the cheapest change that is enough for the users, or else the cheapest that helps.

    None when no change of one step helps. `changes` saves evaluating them again.

    >>> from kvlab.arithmetic.sizing import plan
    >>> two = plan("llama-3.1-70b", gpu="H100", gpus=2, context=131_072, users=1)
    >>> change = cheapest_change(two)
    >>> change.name, change.after.fits
    ('weights in fp8', True)
    """
    changes = next_changes(plan) if changes is None else changes
    if plan.inputs.users:
        wanted = plan.inputs.users
        enough = (c for c in changes if c.after.fits and c.served_after >= wanted)
        found = next(enough, None)
        if found is not None:
            return found
    return next(iter(changes), None)


def served(plan: Plan, binding: Binding) -> int | None:
    """Return the requests over all replicas that fit and are in time; None: any number."""
    requests = binding.requests
    return None if requests is None else requests * plan.inputs.dp


def _served(plan: Plan, binding: Binding) -> int:
    found = served(plan, binding)
    return 10**18 if found is None else found


def _candidates(plan: Plan) -> Iterator[tuple[str, int, Plan]]:
    for name, cost, fields in _steps(plan.inputs):
        try:
            after = plan.inputs.change(**fields)
            _check_heads(after)
            yield name, cost, make_plan(after)
        except InvalidArgument:
            continue


def _check_heads(inputs: PlanInputs) -> None:
    """A step must be one that an engine would take."""
    heads, tp = inputs.deployment.model.num_heads, inputs.deployment.tp
    if refusal(inputs) or (heads is not None and heads % tp):
        raise InvalidArgument("tp", tp, "does not divide the heads")


def _steps(inputs: PlanInputs) -> Iterator[tuple[str, int, dict[str, Any]]]:
    deployment = inputs.deployment
    if inputs.utilization < MOST_UTILIZATION:
        more = min(inputs.utilization + Fraction(5, 100), MOST_UTILIZATION)
        yield f"utilization {float(more):g}", SETTING, {"utilization": more}
    yield from _layouts(inputs)
    if cache_dtype(deployment.cache_dtype).bits_per_element > 8:
        yield "cache in fp8", CACHE_FORMAT, {"cache_dtype": "fp8"}
    narrower = {32: "bf16", 16: "fp8", 8: "int4"}
    bits = int(cache_dtype(deployment.weights_dtype).bits_per_element)
    if bits in narrower:
        yield f"weights in {narrower[bits]}", WEIGHTS_FORMAT, {"weights_dtype": narrower[bits]}
    if inputs.output > 1:
        half = inputs.output // 2
        yield f"output of {half:,} tokens reserved", PROMISE, {"output": half}
    if inputs.context > 1:
        half = inputs.context // 2
        yield f"context of {half:,} tokens", PROMISE, {"context": half}
    yield f"{inputs.dp + 1} replicas", MORE_GPUS, {"dp": inputs.dp + 1}
    yield f"tp {2 * deployment.tp}", MORE_GPUS, {"tp": 2 * deployment.tp}
    if (larger := _larger_gpu(inputs)) is not None:
        yield larger.name, OTHER_GPU, {"gpu": larger, "memory_bytes": larger.driver_bytes}


def _layouts(inputs: PlanInputs) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """The same GPUs, one halving and one doubling away."""
    tp, pp, dp = inputs.deployment.tp, inputs.deployment.pp, inputs.dp
    if tp % 2 == 0:
        fields = {"tp": tp // 2, "pp": 2 * pp}
        if 2 * pp <= inputs.deployment.model.num_layers:
            yield f"tp {tp // 2}, pp {2 * pp}", LAYOUT, fields
        yield f"tp {tp // 2}, {2 * dp} replicas", LAYOUT, {"tp": tp // 2, "dp": 2 * dp}
    if dp % 2 == 0:
        yield f"tp {2 * tp}, {dp // 2} replica(s)", LAYOUT, {"tp": 2 * tp, "dp": dp // 2}


def _larger_gpu(inputs: PlanInputs) -> Gpu | None:
    """The smallest GPU with at least a fifth more memory that does not read more slowly."""
    speed = inputs.gpu.bandwidth_gb_s if inputs.gpu else 0.0
    enough = [gpu for gpu in load_gpus() if 5 * gpu.driver_bytes >= 6 * inputs.memory_bytes]
    larger = [gpu for gpu in enough if gpu.bandwidth_gb_s >= speed]
    return min(larger, key=lambda gpu: gpu.driver_bytes, default=None)

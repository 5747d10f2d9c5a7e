"""Why adding up the memory of all GPUs promises more than the ranks can keep."""

from dataclasses import dataclass

from kvlab.arithmetic.plan_inputs import PlanInputs
from kvlab.arithmetic.sizing import Plan, make_plan
from kvlab.arithmetic.storage import LATENT


@dataclass(frozen=True, slots=True)
class PooledPlan:
    """One replica counted twice: as one pool of memory, and rank by rank.

    `copies` says how many bytes the ranks keep for each byte of the cache; `reasons` say why the
    two counts differ (none when they agree).
    """

    pooled: float
    per_rank: float
    copies: float
    reasons: tuple[str, ...]

    @property
    def lost(self) -> float:
        """Requests that the pool promises and the ranks cannot keep."""
        return self.pooled - self.per_rank


@dataclass(frozen=True, slots=True)
class Step:
    """The full-length requests of one replica after one more assumption was made."""

    assumption: str
    concurrency: float


def pooled_plan(plan: Plan) -> PooledPlan:
    """Return the pooled count beside the count by rank, with the difference explained.

    The pool is what all ranks have left beside their own weights and overhead. With one KV head,
    eight ranks keep eight copies of it:

    >>> from kvlab.arithmetic.catalogue import find_model
    >>> from kvlab.arithmetic.sizing import plan
    >>> twin = {**find_model("llama-3.1-70b").config, "num_key_value_heads": 1}
    >>> both = pooled_plan(plan(twin, gpu_bytes=80 * 10**9, gpus=8, context=131_072, utilization=1))
    >>> int(both.pooled), int(both.per_rank), both.copies
    (92, 11, 8.0)
    """
    tp = plan.inputs.deployment.tp
    left = tp * sum(rank.budget_bytes for rank in plan.ranks)
    held = tp * sum(rank.request_bytes for rank in plan.ranks)
    whole = plan.request_bytes
    pooled = left / whole if whole else plan.concurrency
    copies = held / whole if whole else 1.0
    return PooledPlan(pooled, plan.concurrency, copies, _reasons(plan, held, whole))


def assumption_steps(plan: Plan) -> tuple[Step, ...]:
    """Return the count of one replica as assumptions are changed one at a time, pool first.

    >>> from kvlab.arithmetic.sizing import plan
    >>> steps = assumption_steps(plan("llama-3.1-70b", gpu="H100", gpus=8, context=131_072))
    >>> [round(step.concurrency, 2) for step in steps]
    [11.62, 12.64, 11.05, 11.05, 11.05]
    """
    inputs, gpu = plan.inputs, plan.inputs.gpu
    free = inputs.change(utilization=type(inputs.utilization)(1), overhead_bytes=0)
    memory = inputs.memory_bytes
    steps = []
    if gpu is not None and gpu.marketed_bytes != memory:
        on_box = free.change(memory_bytes=gpu.marketed_bytes)
        steps.append(Step("the memory on the box, one pool, nothing reserved", _pool(on_box)))
    said = "the memory that the driver reports" if _is_driver(inputs) else "the memory given"
    steps.append(Step(f"{said}, one pool, nothing reserved", _pool(free)))
    used = free.change(utilization=inputs.utilization)
    steps.append(Step(f"only {float(inputs.utilization):.0%} of it used", _pool(used)))
    steps.append(Step("overhead of each GPU taken off", _pool(inputs)))
    steps.append(Step("each rank on its own", plan.concurrency))
    return tuple(steps)


def _pool(inputs: PlanInputs) -> float:
    """The naive pool: one copy of the weights, one copy of each request."""
    deployment, plan = inputs.deployment, make_plan(inputs)
    weights = deployment.weights.total_bytes(deployment.weights_dtype)
    each = inputs.usable_bytes - inputs.overhead_bytes
    left = max(deployment.ranks * each - weights, 0)
    return left / plan.request_bytes if plan.request_bytes else plan.concurrency


def _is_driver(inputs: PlanInputs) -> bool:
    return inputs.gpu is not None and inputs.gpu.driver_bytes == inputs.memory_bytes


def _reasons(plan: Plan, held: int, whole: int) -> tuple[str, ...]:
    deployment = plan.inputs.deployment
    stores, tp = deployment.model.layers, deployment.tp
    reasons = []
    if held > whole and any(store.kind == LATENT for store in stores):
        reasons.append(f"latents serve all heads: each of the {tp} ranks keeps them whole")
    few = sorted({x.num_kv_heads for x in stores if x.kind != LATENT and 0 < x.num_kv_heads < tp})
    if held > whole and few:
        heads = " and ".join(map(str, few))
        reasons.append(f"{heads} KV head(s) on {tp} ranks: each rank keeps a whole head, copied")
    if held > whole and not reasons:
        reasons.append(f"heads or states do not divide by {tp}: the fullest rank keeps more")
    if len({rank.concurrency for rank in plan.ranks}) > 1:
        tight = plan.tightest
        said = f"stage {tight.stage} of {len(plan.ranks)} holds fewest requests"
        reasons.append(f"{said}: what the other stages have left cannot be used")
    return tuple(reasons)

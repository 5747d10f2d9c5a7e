"""What vLLM's allocator would make of a plan's budget, beside what the requests need.

The two differ for windowed layers and hybrids: pages made equal, and a window charged with the
tokens of a batch on top. For those, tokens / length is not the number of requests.
"""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.plan_pages import MAX_BATCHED_TOKENS, stage_layout
from kvlab.arithmetic.sizing import Plan
from kvlab.errors import KvlabError


@dataclass(frozen=True, slots=True)
class EngineCapacity:
    """The tightest stage of one replica in vLLM: what its log would print."""

    stage: int
    num_blocks: int
    tokens: int
    concurrency: float


def engine_capacity(
    plan: Plan, *, max_batched_tokens: int = MAX_BATCHED_TOKENS
) -> EngineCapacity | str:
    """Return what vLLM would report, or a sentence when its rules do not cover the model.

    >>> from kvlab.arithmetic.sizing import plan
    >>> engine = engine_capacity(plan("llama-3.1-8b", gpu="H100", context=8192, utilization=0.92))
    >>> engine.tokens, round(engine.concurrency, 2)
    (477728, 58.32)
    """
    batched = whole_number("max_batched_tokens", max_batched_tokens)
    try:
        return min((_stage(plan, rank.stage, batched) for rank in plan.ranks), key=_order)
    except KvlabError as error:
        return f"vLLM's allocator is not modelled for this model: {error}"


def _stage(plan: Plan, stage: int, batched: int) -> EngineCapacity:
    layout = stage_layout(plan.inputs, stage)
    found = layout.capacity(plan.ranks[stage].budget_bytes, plan.inputs.peak_positions, batched)
    return EngineCapacity(stage, found.num_blocks, found.tokens, found.concurrency)


def _order(capacity: EngineCapacity) -> float:
    return capacity.concurrency

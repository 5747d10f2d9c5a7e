"""What vLLM's pages charge for one request, where that is more than the request needs.

A window is charged with the tokens of a batch on top, states take pages of their own, and pages are
made equal. Full attention alone is charged what it needs, in whole blocks, so it is left out here.
"""

from kvlab.arithmetic.plan_inputs import PlanInputs
from kvlab.arithmetic.plan_ranks import RankPlan
from kvlab.arithmetic.storage import CHUNKED, STATE, WINDOWED
from kvlab.arithmetic.vllm_pages import VllmLayout, vllm_layout
from kvlab.errors import KvlabError

MAX_BATCHED_TOKENS = 8192
"""Tokens of a step that vLLM is taken to schedule; the command says them where they count."""

PAGED_APART = (WINDOWED, CHUNKED, STATE)


def page_charges(inputs: PlanInputs) -> tuple[int, ...] | None:
    """Return the bytes that a request at its peak is charged on the fullest rank of each stage.

    None for a model whose pages follow what it needs, or that vLLM's rules do not cover.

    >>> from kvlab.arithmetic.plan_inputs import plan_inputs
    >>> page_charges(plan_inputs("llama-3.1-8b", gpu="H100", context=8192)) is None
    True
    >>> page_charges(plan_inputs("gemma-3-27b", gpu="H100", context=32_768))[0] / 2**20
    6887.5
    """
    deployment = inputs.deployment
    if all(layer.kind not in PAGED_APART for layer in deployment.model.layers):
        return None
    try:
        return tuple(_charge(inputs, stage) for stage in range(deployment.pp))
    except KvlabError:
        return None


def stage_layout(inputs: PlanInputs, stage: int) -> VllmLayout:
    """Return how vLLM lays out the caches of one pipeline stage, on one of its ranks."""
    deployment = inputs.deployment
    return vllm_layout(
        deployment.model,
        block_size=inputs.block_size,
        cache_dtype=deployment.cache_dtype,
        tp=deployment.tp,
        pp=deployment.pp,
        stage=stage,
    )


def _charge(inputs: PlanInputs, stage: int) -> int:
    layout = stage_layout(inputs, stage)
    lengths = inputs.peak_positions, MAX_BATCHED_TOKENS, inputs.deployment.source_length
    return layout.request_bytes(*lengths) if layout.groups else 0


def page_note(ranks: tuple[RankPlan, ...]) -> str | None:
    """Return the sentence that says how pages lower the count, or None where they do not."""
    charged = [rank for rank in ranks if rank.charged_bytes > rank.request_bytes]
    if not charged:
        return None
    bound = min(rank.admission_bound or 0 for rank in charged)
    needed = min(rank.budget_bytes // rank.request_bytes for rank in ranks if rank.request_bytes)
    said = f"windows or states: vLLM's pages hold {bound:,} request(s), the bytes needed {needed:,}"
    batched = f"with {MAX_BATCHED_TOKENS:,} batched tokens"
    return f"{said}; the fit and the command follow the pages, {batched}"

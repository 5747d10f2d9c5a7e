"""A plan as one dict of plain values: what `kvlab plan --json` prints and a widget shows."""

import math
from typing import Any

from kvlab.arithmetic.plan_changes import Change, cheapest_change, next_changes, served
from kvlab.arithmetic.plan_command import no_command, vllm_command
from kvlab.arithmetic.plan_engine import EngineCapacity, engine_capacity
from kvlab.arithmetic.plan_pooled import assumption_steps, pooled_plan
from kvlab.arithmetic.plan_timing import time_plan, what_binds
from kvlab.arithmetic.sizing import Plan


def plan_report(plan: Plan) -> dict[str, Any]:
    """Return everything that a plan says, with bytes as ints and times in seconds.

    A count without a bound (a model that keeps no cache) is None.

    >>> from kvlab.arithmetic.sizing import plan
    >>> report = plan_report(plan("llama-3.1-70b", gpu="H100", gpus=8, context=131_072))
    >>> report["bytes_per_token_per_rank"], report["admission_bound"], report["limit"]
    (40960, 11, 'capacity')
    """
    return {**_inputs(plan), **_memory(plan), **_counts(plan), **_times(plan), **_advice(plan)}


def _inputs(plan: Plan) -> dict[str, Any]:
    inputs, deployment = plan.inputs, plan.inputs.deployment
    return {
        "model": deployment.model.name,
        "gpu": None if inputs.gpu is None else inputs.gpu.name,
        "gpus": inputs.gpus,
        "tp": deployment.tp,
        "pp": deployment.pp,
        "dp": inputs.dp,
        "context": inputs.context,
        "output": inputs.output,
        "peak_positions": inputs.peak_positions,
        "users": inputs.users,
        "cache_dtype": deployment.cache_dtype,
        "weights_dtype": deployment.weights_dtype,
        "utilization": float(inputs.utilization),
        "block_size": inputs.block_size,
    }


def _memory(plan: Plan) -> dict[str, Any]:
    deployment, rank = plan.inputs.deployment, plan.tightest
    token = deployment.request(1)
    return {
        "parameters": deployment.weights.parameters,
        "weight_bytes": deployment.weights.total_bytes(deployment.weights_dtype),
        "bytes_per_token": token.bytes_per_token,
        "bytes_per_token_per_rank": token.bytes_per_token_per_rank,
        "request_bytes": plan.request_bytes,
        "request_bytes_per_rank": rank.request_bytes,
        "charged_bytes_per_rank": rank.held_bytes,
        "memory_bytes_per_rank": rank.memory_bytes,
        "usable_bytes_per_rank": rank.usable_bytes,
        "weight_bytes_per_rank": rank.weight_bytes,
        "overhead_bytes_per_rank": rank.overhead_bytes,
        "budget_bytes_per_rank": rank.budget_bytes,
        "headroom_bytes": plan.headroom_bytes,
        "short_bytes": plan.short_bytes,
        "short_without_requests": max(each.short_bytes(0) for each in plan.ranks),
        "tightest_stage": rank.stage,
        "ranks": [
            {
                "stage": each.stage,
                "layers": each.layers,
                "weight_bytes": each.weight_bytes,
                "budget_bytes": each.budget_bytes,
                "request_bytes": each.request_bytes,
                "concurrency": finite(each.concurrency),
            }
            for each in plan.ranks
        ],
    }


def _counts(plan: Plan) -> dict[str, Any]:
    both, engine = pooled_plan(plan), engine_capacity(plan)
    reported = (
        {"tokens": engine.tokens, "concurrency": finite(engine.concurrency)}
        if isinstance(engine, EngineCapacity)
        else {"unavailable": engine}
    )
    return {
        "fits": plan.fits,
        "verdict": plan.verdict,
        "concurrency": finite(plan.concurrency),
        "admission_bound": plan.admission_bound,
        "total_admission_bound": plan.total_admission_bound,
        "capacity_tokens": plan.capacity_tokens,
        "pooled_concurrency": finite(both.pooled),
        "pooled_reasons": list(both.reasons),
        "steps": [
            {"assumption": step.assumption, "concurrency": finite(step.concurrency)}
            for step in assumption_steps(plan)
        ],
        "engine": reported,
    }


def _times(plan: Plan) -> dict[str, Any]:
    binding, timing = what_binds(plan), time_plan(plan)
    return {
        "limit": binding.limit,
        "binds": binding.says,
        "in_time": binding.requests,
        "ttft_seconds": None if timing is None else timing.ttft.seconds,
        "tpot_seconds": None if timing is None else timing.tpot.seconds,
        "timed_batch": None if timing is None else timing.batch,
        "tokens_per_second": None if timing is None else timing.tokens_per_second,
    }


def _advice(plan: Plan) -> dict[str, Any]:
    changes = next_changes(plan)
    cheapest = cheapest_change(plan, changes)
    return {
        "changes": [_change(change) for change in changes],
        "next_change": None if cheapest is None else cheapest.name,
        "command": vllm_command(plan),
        "no_command": no_command(plan),
        "notes": list(plan.notes),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "change": change.name,
        "cost": change.says_cost,
        "extra_gpus": change.extra_gpus,
        "gained_requests": change.gained_requests,
        "total_admission_bound": change.after.total_admission_bound,
        "in_time": served(change.after, change.binding_after),
        "fits": change.after.fits,
    }


def finite(value: float) -> float | None:
    """Return a number, or None for one without a bound: JSON has no infinity.

    >>> finite(float("inf")) is None
    True
    """
    return value if math.isfinite(value) else None

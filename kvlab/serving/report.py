"""A simulation as one dict of plain numbers: what `--json` prints and what a table shows."""

from collections import Counter
from typing import Any

from kvlab.serving.fleet import Served
from kvlab.serving.metrics import KEPT_ERRORS
from kvlab.serving.quantiles import Quantiles


def serving_report(served: Served) -> dict[str, Any]:
    """Return what a fleet did. Counts are for all replicas together, a share is of the fullest.

    `errors` are the words of the first ones, of `errors_in_all`.
    `peak_block_use` is the largest share of a pool that was ever in use; `sustained_batch` the
    sequences in a step, averaged over the time of all steps and summed over the replicas.
    """
    loops = served.loops
    requests: Counter[str] = Counter()
    for loop in loops:
        requests.update(loop.metrics.requests)
    totals = {
        name: sum(getattr(loop.scheduler.counts, name) for loop in loops)
        for name in ("generation_tokens", "preemptions", "recomputed_tokens", "prefix_query_tokens")
    }
    makespan = max(loop.metrics.makespan for loop in loops)
    generated = totals["generation_tokens"]
    peaks = [loop.scheduler.manager.pool.peak_used for loop in loops]
    return {
        **_setting(served),
        "requests_finished": requests["finished"],
        "requests_rejected": requests["refused"],
        "requests_failed": requests["outgrown"],
        "requests_aborted": requests["aborted"],
        "prompt_tokens": sum(loop.scheduler.counts.prompt_tokens for loop in loops),
        "tokens_generated": generated,
        "tokens_per_second": generated / makespan if makespan else 0.0,
        "makespan_seconds": makespan,
        "wall_seconds": served.wall_seconds,
        "steps": sum(loop.scheduler.counts.steps for loop in loops),
        "peak_block_use": max(peaks) / served.fleet.num_blocks,
        "peak_blocks": max(peaks),
        "peak_waiting": max(loop.metrics.peak_waiting for loop in loops),
        "preemptions": totals["preemptions"],
        "recomputed_tokens": totals["recomputed_tokens"],
        "prefix_hit_tokens": sum(loop.scheduler.counts.prefix_hit_tokens for loop in loops),
        "prefix_query_tokens": totals["prefix_query_tokens"],
        "ttft_seconds": _merged(served, "ttft").summary(),
        "tpot_seconds": _merged(served, "tpot").summary(),
        "queue_seconds": _merged(served, "queue_time").summary(),
        "sustained_batch": sum(loop.metrics.sustained_batch for loop in loops),
        "errors": [error for loop in loops for error in loop.metrics.errors][:KEPT_ERRORS],
        "errors_in_all": sum(loop.metrics.num_errors for loop in loops),
    }


def _setting(served: Served) -> dict[str, Any]:
    fleet, inputs = served.fleet, served.fleet.plan.inputs
    return {
        "model": inputs.deployment.model.name,
        "gpu": inputs.gpu.name if inputs.gpu else None,
        "gpus": inputs.gpus,
        "tp": inputs.deployment.tp,
        "replicas": fleet.replicas,
        "block_size": fleet.block_size,
        "num_blocks": fleet.num_blocks,
        "pool_tokens": fleet.num_blocks * fleet.block_size,
        "pool": fleet.pool_said,
    }


def _merged(served: Served, name: str) -> Quantiles:
    merged = Quantiles()
    for loop in served.loops:
        merged.extend(getattr(loop.metrics, name))
    return merged

"""The runs that the serving explorer shows: one workload on one card, simulated once and kept."""

from dataclasses import dataclass
from functools import cache, lru_cache

from kvlab.serving.fleet import Fleet, plan_fleet
from kvlab.serving.limits import SWAP, Limits
from kvlab.serving.simulator import simulate
from kvlab.serving.watch import Look, Watch, at_times
from kvlab.serving.workloads import make_requests, poisson_arrivals

MODEL, GPU = "llama-3.1-8b", "H100"
REQUESTS, OUTPUTS, STATED = 240, "uniform:50:350", 400
STEPS = 120
"""Looks kept of a run, evenly spaced in its time."""


@dataclass(frozen=True)
class Run:
    """One simulated run: looks evenly spaced in time, and its totals as words by name."""

    looks: tuple[Look, ...]
    totals: dict[str, str]


@cache
def fleet() -> Fleet:
    """Return the card: the pool that the planner leaves on it, and its clock."""
    return plan_fleet(MODEL, gpu=GPU, typical_tokens=1024)


@lru_cache(maxsize=256)
def serving_run(
    rate: int, prompt_tokens: int, num_blocks: int, preemption: str, reserve_output: bool
) -> Run:
    """Simulate `REQUESTS` requests at `rate` a second; answers are 50 to 350 tokens long.

    Users state a limit of 400 tokens, and `reserve_output` believes them. Prompts vary around
    `prompt_tokens`, log-normally with sigma 0.5.

    >>> serving_run(16, 1024, 2048, "recompute", False).looks[-1].waiting
    0
    """
    requests = make_requests(
        REQUESTS,
        prompt_tokens=f"lognormal:{prompt_tokens}:0.5",
        output_tokens=OUTPUTS,
        max_new_tokens=STATED,
        arrivals=poisson_arrivals(rate, seed=10),
        seed=10,
    )
    watch = Watch(max_looks=2 * STEPS)
    limits = Limits(preemption=preemption, reserve_output=reserve_output)
    clock = fleet().clock(swaps=preemption == SWAP)
    loop = simulate(requests, clock, num_blocks=num_blocks, limits=limits, on_step=watch)
    counts, metrics = loop.scheduler.counts, loop.metrics
    totals = {
        "answered": f"{metrics.requests_finished:,}",
        "refused": f"{metrics.requests['refused']:,}",
        "outgrew the pool": f"{metrics.requests['outgrown']:,}",
        "sustained batch": f"{metrics.sustained_batch:,.1f}",
        "tokens/s": f"{metrics.tokens_per_second:,.0f}",
        "computed again": f"{counts.recomputed_tokens:,} tokens",
        "swapped out": f"{counts.swapped_out_blocks:,} blocks",
    }
    return Run(tuple(at_times(watch.looks, STEPS)), totals)

"""The runs that the serving explorer shows: one workload on one card, simulated once and kept."""

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from kvlab.serving.fleet import Fleet, plan_fleet
from kvlab.serving.lengths import parse_lengths
from kvlab.serving.limits import SWAP, Limits
from kvlab.serving.simulator_quick import quick_run
from kvlab.serving.simulator_traffic import Traffic, scheduled_run
from kvlab.serving.step_clock import StepClock
from kvlab.serving.watch import Look, at_times
from kvlab.serving.workloads import poisson_arrivals, stream

MODEL, GPU = "llama-3.1-8b", "H100"
REQUESTS, OUTPUTS, STATED, SEED = 240, "uniform:50:350", 400, 10
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


@cache
def _clock(swaps: bool) -> StepClock:
    """Return the clock of the card: made once, so that it keeps what it has priced."""
    return fleet().clock(swaps=swaps)


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
    traffic = Traffic(arrivals(rate), prompts(prompt_tokens), answers(), (STATED,) * REQUESTS)
    clock = _clock(preemption == SWAP)
    limits = Limits(preemption=preemption, reserve_output=reserve_output)
    how: dict[str, Any] = {"num_blocks": num_blocks, "limits": limits, "max_looks": 2 * STEPS}
    run = quick_run(traffic, clock, **how) or scheduled_run(traffic, clock, **how)
    totals = {
        "answered": f"{run.requests_finished:,}",
        "refused": f"{run.requests_refused:,}",
        "outgrew the pool": f"{run.requests_outgrown:,}",
        "sustained batch": f"{run.sustained_batch:,.1f}",
        "tokens/s": f"{run.tokens_per_second:,.0f}",
        "computed again": f"{run.recomputed_tokens:,} tokens",
        "swapped out": f"{run.swapped_out_blocks:,} blocks",
    }
    return Run(tuple(at_times(run.looks, STEPS)), totals)


@cache
def arrivals(rate: int) -> tuple[float, ...]:
    """Return when the requests of a run arrive, in seconds."""
    return tuple(islice(poisson_arrivals(rate, seed=SEED), REQUESTS))


@cache
def prompts(mean: int) -> tuple[int, ...]:
    """Return the tokens of the prompts of a run."""
    return _drawn("prompts", f"lognormal:{mean}:0.5")


@cache
def answers() -> tuple[int, ...]:
    """Return the tokens of the answers, the same in every run."""
    return _drawn("outputs", OUTPUTS)


def _drawn(name: str, lengths: str) -> tuple[int, ...]:
    """Draw lengths as `make_requests` does."""
    rng, draw = stream(SEED, name), parse_lengths(name, lengths).draw
    return tuple(draw(rng, index) for index in range(REQUESTS))

"""A deployment as the planner sees it, put under load: its pool, its clock, its replicas.

Requests go to the replicas in turn, and each replica is simulated by itself: nobody balances load.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.preemption import host_bytes_per_second
from kvlab.arithmetic.roofline import Device
from kvlab.arithmetic.sizing import Plan, plan
from kvlab.errors import InvalidArgument
from kvlab.serving.limits import SWAP, Limits
from kvlab.serving.loop import ServingLoop
from kvlab.serving.request import Request
from kvlab.serving.simulator import simulate
from kvlab.serving.step_clock import StepClock


@dataclass(frozen=True)
class Fleet:
    """Equal replicas of one plan; `num_blocks` is the pool of each, on its tightest rank."""

    plan: Plan
    num_blocks: int

    @property
    def replicas(self) -> int:
        """Servers that share nothing."""
        return self.plan.inputs.dp

    @property
    def block_size(self) -> int:
        """Tokens of a block."""
        return self.plan.inputs.block_size

    @property
    def max_seq_len(self) -> int | None:
        """Positions that the model was made for; None where its config does not say."""
        return self.plan.inputs.deployment.model.max_seq_len

    @property
    def pool_said(self) -> str:
        """Where the number of blocks comes from, in one sentence."""
        rank, inputs = self.plan.tightest, self.plan.inputs
        return (
            f"{self.num_blocks:,} blocks of {self.block_size} tokens on each replica:"
            f" {float(inputs.utilization):g} of {rank.memory_bytes / 2**30:.2f} GiB less"
            f" {rank.weight_bytes / 2**30:.2f} GiB of weights and"
            f" {rank.overhead_bytes / 2**30:.2f} GiB of overhead leave"
            f" {rank.budget_bytes / 2**30:.2f} GiB on the tightest GPU"
        )

    def clock(self, *, swaps: bool = False) -> StepClock:
        """Return the clock of one replica; with `swaps` it knows the link to the host."""
        gpu = self.plan.inputs.gpu
        if gpu is None:
            raise InvalidArgument("gpu", None, "a simulation needs a GPU of the catalogue")
        link = host_bytes_per_second(gpu) if swaps else None
        return StepClock(
            self.plan.inputs.deployment,
            Device.of(gpu),
            block_size=self.block_size,
            host_bytes_per_second=link,
        )


def plan_fleet(
    model: Any, *, gpu: str, typical_tokens: int, block_size: int = 16, **inputs: Any
) -> Fleet:
    """Return the replicas that `plan` lays out, each with the pool that its plan leaves.

    `typical_tokens` is the length at which a token is priced; it matters only where a model has
    layers that stop growing. Keywords are those of `kvlab.arithmetic.sizing.plan`. Raises
    `InvalidArgument` where not one block is left.

    >>> plan_fleet("llama-3.1-8b", gpu="H100", typical_tokens=200).num_blocks
    29043
    """
    made = plan(model, context=typical_tokens, gpu=find_gpu(gpu), block_size=block_size, **inputs)
    tokens = made.capacity_tokens
    if tokens is None:
        rule = "stores nothing that grows with the tokens: there is no pool to simulate"
        raise InvalidArgument("model", str(model), rule)
    if tokens < block_size:
        raise InvalidArgument("model", str(model), f"no block is left for caches: {made.verdict}")
    return Fleet(made, tokens // block_size)


@dataclass(frozen=True)
class Served:
    """What a fleet did: one finished loop for each replica, and how long simulating took."""

    fleet: Fleet
    loops: tuple[ServingLoop, ...]
    wall_seconds: float


def simulate_fleet(
    fleet: Fleet,
    requests: Iterable[Request],
    limits: Limits | None = None,
    **options: Any,
) -> Served:
    """Serve a workload, each replica every n-th request; other keywords are those of `simulate`.

    With several replicas `requests` must be something that can be gone through again.
    """
    if fleet.replicas > 1 and iter(requests) is requests:
        rule = "several replicas each go through the requests: give a list or a Workload"
        raise InvalidArgument("requests", requests, rule)
    rules = limits or Limits(max_seq_len=fleet.max_seq_len)
    started = perf_counter()
    clock = fleet.clock(swaps=rules.preemption == SWAP)
    loops = tuple(
        simulate(
            islice(requests, replica, None, fleet.replicas),
            clock,
            num_blocks=fleet.num_blocks,
            limits=rules,
            **options,
        )
        for replica in range(fleet.replicas)
    )
    return Served(fleet, loops, perf_counter() - started)

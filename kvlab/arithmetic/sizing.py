"""Does a deployment fit: memory of each rank, weights, what is left for caches, requests at once.

A rank that is full stops its replica, whatever the others have left: the tightest rank decides.
Times are in `plan_timing`, changes in `plan_changes`, the search for GPUs in `plan_search`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvlab.arithmetic.plan_deployment import ModelSource
from kvlab.arithmetic.plan_inputs import PlanInputs, plan_inputs
from kvlab.arithmetic.plan_notes import plan_notes
from kvlab.arithmetic.plan_pages import page_charges, page_note
from kvlab.arithmetic.plan_ranks import RankPlan, ranks_of, tightest_rank
from kvlab.arithmetic.units import format_bytes


@dataclass(frozen=True)
class Plan:
    """One deployment, planned. Counts are for a replica; those called `total` are for all.

    `ranks` has one entry for each pipeline stage: the fullest of its equal ranks.
    """

    inputs: PlanInputs
    ranks: tuple[RankPlan, ...]

    @cached_property
    def tightest(self) -> RankPlan:
        """The rank that holds fewest requests; not always the one with the least memory left."""
        return tightest_rank(self.ranks)

    @property
    def concurrency(self) -> float:
        """Full-length requests that one replica holds, with the fraction."""
        return self.tightest.concurrency

    @property
    def admission_bound(self) -> int | None:
        """Requests that one replica may admit if all of them reach their peak; None: any number."""
        bounds = [n for n in (rank.admission_bound for rank in self.ranks) if n is not None]
        return min(bounds, default=None)

    @property
    def total_admission_bound(self) -> int | None:
        """The same over all replicas."""
        bound = self.admission_bound
        return None if bound is None else bound * self.inputs.dp

    @property
    def capacity_tokens(self) -> int | None:
        """Tokens that one replica holds at this length."""
        return self.tightest.capacity_tokens

    @property
    def users_per_replica(self) -> int:
        """The requests to place on the fullest replica: the users, or one."""
        return -(-(self.inputs.users or 1) // self.inputs.dp)

    @property
    def short_bytes(self) -> int:
        """What the rank that misses most lacks for its users (or one request); 0: they fit."""
        return max(rank.short_bytes(self.users_per_replica) for rank in self.ranks)

    @property
    def fits(self) -> bool:
        """Whether the users (or one request) fit, each at the peak."""
        return self.short_bytes == 0

    @property
    def headroom_bytes(self) -> int:
        """What the tightest rank has left once the users are in; never below 0."""
        n = self.users_per_replica
        return max(min(r.left_bytes - n * r.held_bytes for r in self.ranks), 0)

    @cached_property
    def request_bytes(self) -> int:
        """One request at its peak in whole blocks, each byte counted once."""
        return self.inputs.deployment.request(self.inputs.block_positions).whole.request_bytes

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, what is copied, and what an engine would refuse."""
        said = page_note(self.ranks)
        return (*([said] if said else []), *plan_notes(self.inputs))

    @property
    def verdict(self) -> str:
        """One sentence: what fits, or by how much it does not."""
        positions = f"{self.inputs.peak_positions:,} positions"
        short = [rank.short_bytes(0) for rank in self.ranks]
        if max(short):
            said = "weights and overhead exceed the usable memory of a rank"
            return f"does not fit by {format_bytes(max(short))}: {said}"
        wanted = f"{self.inputs.users or 1} request(s) of {positions}"
        if not self.fits:
            said = f"a rank lacks this much for {wanted}"
            return f"does not fit by {format_bytes(self.short_bytes)}: {said}"
        bound = self.total_admission_bound
        many = "any number of" if bound is None else f"{bound:,}"
        return f"fits: {many} request(s) of {positions}"


def plan(model: ModelSource, *, context: int, **inputs: Any) -> Plan:
    """Return the plan of `model` for requests of `context` tokens.

    Keywords: `gpu` (a catalogue name) or `gpu_bytes`, `gpus`, `tp`, `pp`, `dp`, `weights_dtype`,
    `cache_dtype`, `parameters`, `source_length`, `output` (tokens reserved for growth), `users`,
    `utilization` (0 to 1), `overhead_bytes` (on each rank, inside the usable memory), `block_size`,
    `ttft_target` and `tpot_target` (seconds). Raises `InvalidArgument` naming the one at fault.

    Llama 3.1 70B on eight nominal 80 GB cards, 128K each: with nothing reserved, then with 0.9 of
    the memory and 3 GB of overhead on a card.

    >>> box = dict(gpu_bytes=80 * 10**9, gpus=8, context=131_072)
    >>> round(plan("llama-3.1-70b", utilization=1, **box).concurrency, 1)
    11.6
    >>> round(plan("llama-3.1-70b", overhead_bytes=3 * 10**9, **box).concurrency, 2)
    9.57
    """
    return make_plan(plan_inputs(model, context=context, **inputs))


def make_plan(inputs: PlanInputs) -> Plan:
    """Return the plan for inputs that were checked already."""
    ranks = ranks_of(
        inputs.deployment,
        positions=inputs.peak_positions,
        block_size=inputs.block_size,
        memory_bytes=inputs.memory_bytes,
        usable_bytes=inputs.usable_bytes,
        overhead_bytes=inputs.overhead_bytes,
        charged_bytes=page_charges(inputs),
    )
    return Plan(inputs, ranks)

"""One rank's share of a plan: its memory, its weights, and how many requests it holds."""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.plan_deployment import Deployment, ModelSource
from kvlab.arithmetic.plan_weights import given_weights
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import ModelStorage


@dataclass(frozen=True, slots=True)
class RankPlan:
    """The fullest rank of one pipeline stage; every entry in bytes but the tokens.

    `request_bytes` is one request at its peak, rounded up to `block_positions`; `charged_bytes` is
    what an engine's pages charge for it, 0 where they follow the request.
    """

    stage: int
    layers: int
    memory_bytes: int
    usable_bytes: int
    weight_bytes: int
    overhead_bytes: int
    bytes_per_token: int
    request_bytes: int
    block_positions: int
    block_size: int
    charged_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        """What one request at its peak takes from the budget: its bytes, or its pages if more."""
        return max(self.request_bytes, self.charged_bytes)

    @property
    def left_bytes(self) -> int:
        """Usable memory less weights and overhead; below 0 they do not fit."""
        return self.usable_bytes - self.weight_bytes - self.overhead_bytes

    @property
    def budget_bytes(self) -> int:
        """What is left for caches: never below 0."""
        return max(self.left_bytes, 0)

    @property
    def concurrency(self) -> float:
        """Full-length requests whose bytes the budget holds, with their fraction."""
        if not self.request_bytes:
            return float("inf") if self.left_bytes >= 0 else 0.0
        return self.budget_bytes / self.request_bytes

    @property
    def admission_bound(self) -> int | None:
        """Full-length requests that fit together; None: any number."""
        if not self.held_bytes:
            return None if self.left_bytes >= 0 else 0
        return self.budget_bytes // self.held_bytes

    @property
    def capacity_tokens(self) -> int | None:
        """Tokens that the budget holds in whole blocks, at this length; None: without a bound."""
        if not self.request_bytes:
            return None if self.left_bytes >= 0 else 0
        tokens = self.budget_bytes * self.block_positions // self.request_bytes
        return tokens // self.block_size * self.block_size

    def short_bytes(self, requests: int) -> int:
        """Return what is missing for so many full-length requests; 0 when they fit."""
        return max(requests * self.held_bytes - self.left_bytes, 0)


def tightest_rank(ranks: tuple[RankPlan, ...]) -> RankPlan:
    """Return the rank that holds fewest requests; among equals the one that lacks most."""
    return min(ranks, key=lambda rank: (rank.concurrency, rank.left_bytes))


def ranks_of(
    deployment: Deployment,
    *,
    positions: int,
    block_size: int,
    memory_bytes: int,
    usable_bytes: int,
    overhead_bytes: int = 0,
    weight_bytes: tuple[int, ...] | None = None,
    charged_bytes: tuple[int, ...] | None = None,
) -> tuple[RankPlan, ...]:
    """Return the fullest rank of each stage; `weight_bytes` replaces those of the deployment."""
    blocks = -(-positions // block_size) * block_size
    request = deployment.request(blocks)
    weights = deployment.weight_bytes if weight_bytes is None else weight_bytes
    return tuple(
        RankPlan(
            stage=stage,
            layers=layers,
            memory_bytes=memory_bytes,
            usable_bytes=usable_bytes,
            weight_bytes=weights[stage],
            overhead_bytes=overhead_bytes,
            bytes_per_token=request.stages[stage].bytes_per_token,
            request_bytes=request.stages[stage].request_bytes,
            block_positions=blocks,
            block_size=block_size,
            charged_bytes=0 if charged_bytes is None else charged_bytes[stage],
        )
        for stage, layers in enumerate(deployment.stage_layers)
    )


def fit_in_budget(
    model: ModelSource,
    *,
    budget_bytes: int,
    context: int,
    output: int = 0,
    block_size: int = 16,
    cache_dtype: str = "bf16",
    tp: int = 1,
) -> RankPlan:
    """Return what a budget for caches holds, when the memory left for them is known already.

    Eight requests of 70B that grow from 8,192 to 9,216 positions do not fit into 20 GiB:

    >>> rank = fit_in_budget("llama-3.1-70b", budget_bytes=20 * 2**30, context=8192, output=1024)
    >>> rank.admission_bound, rank.short_bytes(8) / 2**30
    (7, 2.5)
    >>> [fit_in_budget("llama-3.1-8b", budget_bytes=62 * 2**30, context=n).admission_bound
    ...  for n in (2048, 8192, 32_768, 131_072)]
    [248, 62, 15, 3]
    """
    budget = whole_number("budget_bytes", budget_bytes, minimum=0)
    peak = whole_number("context", context) + whole_number("output", output, minimum=0)
    storage = model if isinstance(model, ModelStorage) else read_model(model)
    nothing = given_weights(1, storage.num_layers)
    ranks = ranks_of(
        Deployment(storage, nothing, "bf16", cache_dtype, tp),
        positions=peak,
        block_size=whole_number("block_size", block_size),
        memory_bytes=budget,
        usable_bytes=budget,
        weight_bytes=(0,),
    )
    return ranks[0]

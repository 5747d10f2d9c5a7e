"""What claims and questions about sizing need beyond `kvlab.arithmetic`: small sums and ratios."""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.plan_timing import time_plan
from kvlab.arithmetic.ranks import heads_on_rank
from kvlab.arithmetic.sizing import plan
from kvlab.arithmetic.units import GB, GIB
from kvlab.course.admission_11 import admission_bound
from kvlab.course.checks_11 import start_up_lines


def users_against_pool(
    model: str, gpus: int, card_gb: int, context: int, users: int
) -> list[float]:
    """Return GB that the users' caches need, and GB that the cards have beside the weights.

    >>> [round(gb, 1) for gb in users_against_pool("llama-3.1-70b", 8, 80, 131_072, 8)]
    [343.6, 498.9]
    """
    box = plan(model, gpu_bytes=card_gb * GB, gpus=gpus, context=context, utilization=1)
    weights = box.inputs.deployment.weights.total_bytes()
    return [users * box.request_bytes / GB, gpus * card_gb - weights / GB]


def full_requests(
    model: str, gpus: int, card_gb: int, context: int, percent: int, overhead_gb: int = 0
) -> float:
    """Return full-length requests when `percent` of nominal cards may be used, ranks as they are.

    `overhead_gb` is what each card needs beside weights and cache.

    >>> round(full_requests("llama-3.1-70b", 8, 80, 131_072, 100), 1)
    11.6
    """
    cards = {"gpu_bytes": card_gb * GB, "gpus": gpus, "overhead_bytes": overhead_gb * GB}
    return plan(model, **cards, context=context, utilization=percent / 100).concurrency


def positions_made_for(models: list[str]) -> list[int]:
    """Return the longest context that each model's config gives."""
    return [int(find_model(model).config["max_position_embeddings"]) for model in models]


def box_memory_gb(gpu: str, gpus: int) -> list[float]:
    """Return GB of several cards: by the name on the box, and as the driver reports them."""
    card = find_gpu(gpu)
    return [gpus * card.marketed_bytes / GB, gpus * card.driver_bytes / GB]


def full_pool_steps(
    model: str, gpu: str, gpus: int, contexts: list[int], overhead_gb: int = 0
) -> list[float]:
    """Return the least milliseconds of a step with a full pool, for requests of each length."""
    cards = {"gpu": gpu, "gpus": gpus, "overhead_bytes": overhead_gb * GB}
    times = (time_plan(plan(model, **cards, context=n)) for n in contexts)
    return [1000 * t.tpot.seconds if t else 0.0 for t in times]


def requests_at_peak(budget_gib: int, kib_per_token: int, context: int, output: int) -> int:
    """Return the admission bound for a budget in GiB and blocks of 16.

    >>> requests_at_peak(20, 320, 8192, 1024)
    7
    """
    return admission_bound(budget_gib * GIB, kib_per_token * 1024, context, output, 16)


def budget_gb(card_gb: int, percent: int, weights_gb: int, overhead_gb: int) -> float:
    """Return GB left for caches on a rank: the share that may be used, less weights and overhead.

    >>> budget_gb(80, 90, 18, 3)
    51.0
    """
    return card_gb * percent / 100 - weights_gb - overhead_gb


def token_bytes_on_rank(layers: int, kv_heads: int, head_dim: int, tp: int) -> int:
    """Return bytes of a token on the fullest rank in 16 bit; heads are copied, never split.

    >>> token_bytes_on_rank(80, 8, 128, 16)
    40960
    """
    return 2 * layers * heads_on_rank(kv_heads, tp) * head_dim * 2


def logged_concurrency(tokens: int, length: int) -> float:
    """Return the concurrency that vLLM prints beside its tokens, full attention, blocks of 16."""
    return start_up_lines(tokens, 1, 16, length)[2]


ALL: tuple[Callable[..., Any], ...] = (
    users_against_pool,
    full_requests,
    positions_made_for,
    box_memory_gb,
    full_pool_steps,
    requests_at_peak,
    budget_gb,
    token_bytes_on_rank,
    logged_concurrency,
)

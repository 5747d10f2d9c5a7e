"""What claims, questions and exercises of chapter 10 need: queues, links to the host, pools."""

from collections.abc import Callable
from math import floor
from typing import Any

from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.preemption import host_bytes_per_second, preemption_cost


def hbm_over_pcie(gpu: str) -> float:
    """Return the memory bandwidth of a GPU over its link to the host in one direction, nominal.

    >>> round(hbm_over_pcie("H100"), 1)
    52.3
    """
    return find_gpu(gpu).bandwidth_gb_s * 1e9 / host_bytes_per_second(gpu)


def hbm_over_both_ways(gpu: str) -> float:
    """Return the memory bandwidth of a GPU over both directions of its link added up."""
    return hbm_over_pcie(gpu) / 2


def milliseconds_to_swap(model: str, gpu: str, tokens: int, tp: int = 1) -> float:
    """Return the least time to move one request's bf16 cache to the host and back.

    >>> round(milliseconds_to_swap("llama-3.1-8b", "H100", 8192), 2)
    33.55
    """
    cost = preemption_cost(Deployment.of(model, tp=tp), tokens=tokens, gpu=gpu)
    return 1000 * cost.swap_seconds


def milliseconds_to_recompute(model: str, gpu: str, tokens: int, tp: int = 1) -> float:
    """Return the least time to compute one request's cache again in one prefill."""
    cost = preemption_cost(Deployment.of(model, tp=tp), tokens=tokens, gpu=gpu)
    return 1000 * cost.recompute_seconds


def prefilled_over_prompt(prompt_tokens: int, emitted: int, found: int) -> float:
    """Return the tokens prefilled over those of the prompt, for one preemption by recompute.

    `emitted` tokens were written before it; `found` of all are still in the pool when it is back.

    >>> prefilled_over_prompt(1000, 300, 0), prefilled_over_prompt(1000, 300, 992)
    (2.3, 1.308)
    """
    return (2 * prompt_tokens + emitted - found) / prompt_tokens


def requests_in_pool(model: str, pool_gb: float, context: int) -> int:
    """Return the requests of `context` tokens whose bf16 caches fit into so many GB.

    >>> requests_in_pool("llama-3.1-70b", 167.77216, 8000)
    64
    """
    return floor(pool_gb * 1e9 / Deployment.of(model).request(context).request_bytes)


def pool_gb_for(model: str, requests: int, context: int) -> float:
    """Return the GB that so many requests of `context` tokens need at least, payload alone."""
    return Deployment.of(model).request(context, requests).request_bytes / 1e9


def first_token_seconds(n: int, seats: int, steps: int, step_seconds: float) -> float:
    """Return when the n-th of a burst has its first token; all answers take `steps` steps.

    `seats` run at once, each step takes `step_seconds`, and one step reads any prompt.

    >>> first_token_seconds(65, 64, 100, 0.01)
    1.01
    """
    return ((n - 1) // seats * steps + 1) * step_seconds


def blocks_of(tokens: int, block_size: int) -> int:
    """Return the blocks that hold so many tokens: the last may be begun only.

    >>> blocks_of(17, 16)
    2
    """
    return -(-tokens // block_size)


def requests_admitted(pool_blocks: int, tokens: int, block_size: int) -> int:
    """Return the requests of so many tokens each that a pool can hold at once."""
    return pool_blocks // blocks_of(tokens, block_size)


ALL: tuple[Callable[..., Any], ...] = (
    hbm_over_pcie,
    hbm_over_both_ways,
    milliseconds_to_swap,
    milliseconds_to_recompute,
    prefilled_over_prompt,
    requests_in_pool,
    pool_gb_for,
    first_token_seconds,
    blocks_of,
    requests_admitted,
)

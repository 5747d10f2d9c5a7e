"""What rows of the claim audit need about budgets, links and prices: what fits, and how long."""

from collections.abc import Callable, Mapping
from typing import Any

from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.flop_steps import forward_flops
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.plan_dense import read_weights
from kvlab.arithmetic.preemption import host_bytes_per_second
from kvlab.arithmetic.prices import find_price
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.roofline import Device, seconds_to_ship
from kvlab.arithmetic.sizing import plan
from kvlab.arithmetic.units import GB, GIB
from kvlab.course.claim_math_11 import full_requests
from kvlab.course.claim_math_audit import unit_bytes


def parameters_of(model: str) -> int:
    """Return the parameters of a dense model, counted from its config.

    >>> parameters_of("llama-3.1-8b")
    8030261248
    """
    found = read_weights(dict(find_model(model).config)).parameters
    assert found is not None, "a dense model's parameters can be counted"
    return found


def requests_in_budget(
    budget: int, unit: str, model: str, contexts: list[int], kv_heads: int = 0
) -> list[int]:
    """Return the whole 16-bit requests of each length in a budget of so many GiB or GB.

    `kv_heads` counts a twin of the model with that many KV heads; 0: the model as it is.

    >>> requests_in_budget(62, "GiB", "meta-llama-3-8b", [2048, 8192, 32_768, 131_072])
    [248, 62, 15, 3]
    """
    config: Mapping[str, Any] = find_model(model).config
    storage = read_model({**config, "num_key_value_heads": kv_heads} if kv_heads else config)
    num_bytes = budget * unit_bytes(unit)
    return [num_bytes // size_request(storage, context=n).request_bytes for n in contexts]


def left_on_card_gib(model: str, card_gib: float, percent_used: int, overhead_gb: int) -> float:
    """Return the GiB that a card leaves for caches beside 16-bit weights and decimal overhead.

    >>> round(left_on_card_gib("meta-llama-3-8b", 79.15, 100, 2), 1)
    62.3
    """
    taken = (2 * parameters_of(model) + overhead_gb * GB) / GIB
    return card_gib * percent_used / 100 - taken


def requests_on_cards(
    model: str, card_gib: float, gpus: int, context: int, percent_used: int, overhead_gb: int = 0
) -> float:
    """Return the full-length requests, by rank, of cards with so many GiB each.

    >>> round(requests_on_cards("llama-3.1-70b", 79.15, 8, 131_072, 90), 2)
    10.96
    """
    cards = {"gpu_bytes": int(card_gib * GIB), "gpus": gpus, "overhead_bytes": overhead_gb * GB}
    return plan(model, **cards, context=context, utilization=percent_used / 100).concurrency


def users_fit(model: str, gpus: int, card_gb: int, context: int, users: int) -> int:
    """Return 1 when the caches of so many users fit on nominal cards with nothing reserved, else 0.

    >>> [users_fit("llama-3.1-70b", 8, 80, 131_072, users) for users in (8, 12)]
    [1, 0]
    """
    return int(full_requests(model, gpus, card_gb, context, 100) >= users)


def cards_gb(card_gib: float, cards: int) -> float:
    """Return cards of so many GiB together, in GB.

    >>> round(cards_gb(79.15, 8), 1)
    679.9
    """
    return cards * card_gib * GIB / GB


def prefill_work(model: str, tokens: int) -> int:
    """Return the FLOPs of projections, MLP and causal attention of one whole prefill."""
    work = forward_flops(model_shape(model), q_len=tokens)
    return work.linear + work.attention


def seconds_at_peak(flops: int, gpu: str, gpus: int) -> float:
    """Return the least seconds for so many 16-bit FLOPs on `gpus` equal GPUs."""
    return flops / (gpus * Device.of(gpu).flops_per_second)


def memory_over_host_link(gpu: str) -> float:
    """Return a GPU's memory bandwidth over its PCIe rate in one direction.

    >>> round(memory_over_host_link("H100"), 1)
    52.3
    """
    return find_gpu(gpu).bandwidth_gb_s * 1e9 / host_bytes_per_second(gpu)


def seconds_over_host_link(num_bytes: int, gpu: str, links: int = 1) -> float:
    """Return the least seconds to move bytes to the host over `links` PCIe links at once.

    >>> round(seconds_over_host_link(42_949_672_960, "H100"), 2)
    0.67
    """
    rate = host_bytes_per_second(gpu)
    return seconds_to_ship(num_bytes, link_bytes_per_second=rate, links=links)


def reads_until_cheaper(prices: list[str]) -> list[int]:
    """Return for each price list how many reads after the write make caching the cheaper way.

    >>> reads_until_cheaper(["anthropic-5-minutes", "anthropic-1-hour"])
    [1, 2]
    """
    uses = [find_price(price).uses_to_pay() for price in prices]
    return [first - 1 for first in uses if first is not None]


ALL: tuple[Callable[..., Any], ...] = (
    parameters_of,
    requests_in_budget,
    left_on_card_gib,
    requests_on_cards,
    users_fit,
    cards_gb,
    prefill_work,
    seconds_at_peak,
    memory_over_host_link,
    seconds_over_host_link,
    reads_until_cheaper,
)

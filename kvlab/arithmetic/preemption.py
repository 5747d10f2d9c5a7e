"""When memory runs out: what it costs to set one request aside, in three ways.

Swap its cache to the host and back, drop it and compute it again, or let it wait at admission until
another one ends. All times are lower bounds. Left out: prefix blocks that survive, other traffic.
"""

import re
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.gpus import Gpu, find_gpu
from kvlab.arithmetic.plan_checks import positive
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device, seconds_to_ship, time_decode, time_prefill
from kvlab.errors import InvalidArgument

PCIE_GB_S = {3: 16.0, 4: 32.0, 5: 64.0, 6: 128.0}
"""PCIe generation -> GB/s of 16 lanes in one direction, nominal: before encoding and protocol."""

SWAP, RECOMPUTE, WAIT = "swap", "recompute", "wait"


@dataclass(frozen=True, slots=True)
class PreemptionCost:
    """Seconds of each way for one request that holds `tokens`; `swapped_bytes` cross once each way.

    `swap_seconds` is out and back in. `recompute_seconds` is a prefill of all tokens held, those
    already emitted too. `wait_seconds` is until another request has emitted its remaining tokens.
    """

    tokens: int
    swapped_bytes: int
    swap_seconds: float
    recompute_seconds: float
    wait_seconds: float | None

    @property
    def cheapest(self) -> str:
        """The quickest way; waiting takes no work from the device, but holds the request up."""
        costs = {SWAP: self.swap_seconds, RECOMPUTE: self.recompute_seconds}
        if self.wait_seconds is not None:
            costs[WAIT] = self.wait_seconds
        return min(costs, key=lambda way: costs[way])


def preemption_cost(
    deployment: Deployment,
    *,
    tokens: int,
    gpu: "str | Gpu | None" = None,
    device: Device | None = None,
    host_bytes_per_second: float | None = None,
    remaining_tokens: int | None = None,
    batch: int = 1,
) -> PreemptionCost:
    """Return what it costs to set aside one request that holds `tokens` tokens.

    Give a `gpu` of the catalogue, or a `device` with `host_bytes_per_second` (one direction; every
    rank has a link of its own). `remaining_tokens` are those that the request waited for still has
    to emit, in a batch of `batch`.

    >>> eight = Deployment.of("llama-3.1-70b", tp=8)
    >>> cost = preemption_cost(eight, tokens=131_072, gpu="H100", remaining_tokens=500, batch=8)
    >>> round(cost.swap_seconds, 3), round(cost.recompute_seconds, 1), round(cost.wait_seconds, 1)
    (0.168, 5.1, 9.0)
    >>> cost.cheapest
    'swap'
    """
    held, others = whole_number("tokens", tokens), whole_number("batch", batch)
    card = find_gpu(gpu) if isinstance(gpu, str) else gpu
    if device is None and card is None:
        raise InvalidArgument("gpu", gpu, "give a GPU of the catalogue, or a device")
    chosen = device or Device.of(card)  # type: ignore[arg-type]
    link = _host_link(card, host_bytes_per_second)
    request = deployment.request(held)
    one_way = seconds_to_ship(request.request_bytes_per_rank, link_bytes_per_second=link)
    wait = None
    if remaining_tokens is not None:
        steps = whole_number("remaining_tokens", remaining_tokens, minimum=0)
        wait = steps * time_decode(deployment, chosen, context=held, batch=others).seconds
    recompute = time_prefill(deployment, chosen, prompt_tokens=held).seconds
    swapped = deployment.tp * sum(stage.request_bytes for stage in request.stages)
    return PreemptionCost(held, swapped, 2 * one_way, recompute, wait)


def host_bytes_per_second(gpu: "str | Gpu") -> float:
    """Return the nominal rate between a GPU and its host, in one direction.

    >>> host_bytes_per_second("H100"), host_bytes_per_second("A100")
    (64000000000.0, 32000000000.0)
    """
    card = find_gpu(gpu) if isinstance(gpu, str) else gpu
    found = re.match(r"(\d)\.0", card.pcie)
    rate = PCIE_GB_S.get(int(found[1])) if found else None
    if rate is None:
        rule = f"has no PCIe rate in the catalogue ({card.pcie}); give host_bytes_per_second"
        raise InvalidArgument("gpu", card.name, rule)
    return rate * 1e9


def _host_link(card: Gpu | None, rate: float | None) -> float:
    if rate is not None:
        return positive("host_bytes_per_second", rate)
    if card is None:
        rule = "must be given with a device that is not in the catalogue"
        raise InvalidArgument("host_bytes_per_second", None, rule)
    return host_bytes_per_second(card)

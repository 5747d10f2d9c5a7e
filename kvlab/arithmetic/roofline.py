"""How long prefill and decode take at least, from FLOPs, bytes and a device.

A pass takes the longer of its arithmetic and its reading. These are lower bounds: launch times,
communication between ranks and queueing come on top.
"""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.gpus import Gpu, find_gpu
from kvlab.arithmetic.plan_checks import positive
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline_work import StageWork, decode_work, prefill_work

COMPUTE, MEMORY = "compute", "memory"


@dataclass(frozen=True, slots=True)
class Device:
    """A device as the roofline sees it: operations and bytes a second, as promised or as measured.

    >>> h100 = Device.of("H100")
    >>> round(h100.ridge, 1), h100.attainable(1.0)
    (295.2, 3350000000000.0)
    """

    name: str
    flops_per_second: float
    bytes_per_second: float

    def __post_init__(self) -> None:
        positive("flops_per_second", self.flops_per_second)
        positive("bytes_per_second", self.bytes_per_second)

    @classmethod
    def of(cls, gpu: "str | Gpu") -> "Device":
        """Return a GPU of the catalogue with its dense 16-bit rate and its memory bandwidth."""
        found = gpu if isinstance(gpu, Gpu) else find_gpu(gpu)
        return cls(found.name, found.matrix_tflops * 1e12, found.bandwidth_gb_s * 1e9)

    @property
    def ridge(self) -> float:
        """FLOPs for each byte at which arithmetic and reading take the same time."""
        return self.flops_per_second / self.bytes_per_second

    def ridge_tokens(self, bits_per_weight: float = 16) -> float:
        """Return the tokens of a pass at which the matrices stop being bound by their reading.

        A weight of b bits is read once and used for 2 FLOPs by each token.

        >>> round(Device.of("H100").ridge_tokens())
        295
        """
        return self.ridge * bits_per_weight / 16

    def attainable(self, intensity: float) -> float:
        """Return the FLOP/s that the roof allows at so many FLOPs for each byte."""
        return min(self.flops_per_second, intensity * self.bytes_per_second)

    def seconds(self, work: StageWork) -> float:
        """Return the least time of a pass on one rank."""
        return max(work.flops / self.flops_per_second, work.bytes / self.bytes_per_second)

    def bound(self, work: StageWork) -> str:
        """Return what the pass waits for: "compute" or "memory"."""
        return COMPUTE if work.intensity >= self.ridge else MEMORY


@dataclass(frozen=True, slots=True)
class PassTime:
    """The least time of one pass for the tokens it emits, and the work of each stage's rank."""

    seconds: float
    bound: str
    stages: tuple[StageWork, ...]
    tokens: int

    @property
    def tokens_per_second(self) -> float:
        """Tokens emitted a second by one replica when pass follows pass."""
        return self.tokens / self.seconds

    @property
    def cache_share(self) -> float:
        """The share of the bytes moved that is cache."""
        moved = sum(stage.bytes for stage in self.stages)
        return sum(stage.cache_bytes for stage in self.stages) / moved if moved else 0.0


def time_prefill(
    deployment: Deployment, device: Device, *, prompt_tokens: int, batch: int = 1
) -> PassTime:
    """Return the least time to the first token (TTFT) of prompts that wait for nothing.

    >>> million = time_prefill(Deployment.of("llama-3.1-70b", tp=8), Device.of("H100"),
    ...                        prompt_tokens=10**6)
    >>> round(million.seconds / 60, 1), million.bound
    (3.0, 'compute')
    """
    works = prefill_work(deployment, prompt_tokens, batch)
    seconds = sum(device.seconds(work) for work in works)
    return PassTime(seconds, _bound(device, works), works, batch)


def time_decode(
    deployment: Deployment, device: Device, *, context: int, batch: int = 1
) -> PassTime:
    """Return the least time for one token of each request (TPOT) in a batch.

    With pipeline stages the batch runs as one part for each stage: a token waits for all stages,
    and for the other parts on the slowest one.

    >>> eight = Deployment.of("llama-3.1-70b", tp=8)
    >>> step = time_decode(eight, Device.of("H100"), context=8192, batch=32)
    >>> round(1000 * step.seconds, 1), step.bound, round(step.cache_share, 2)
    (8.5, 'memory', 0.38)
    """
    requests = whole_number("batch", batch)
    parts = min(deployment.pp, requests)
    works = decode_work(deployment, context, -(-requests // parts))
    times = [device.seconds(work) for work in works]
    seconds = max(sum(times), parts * max(times))
    return PassTime(seconds, _bound(device, works), works, requests)


def _bound(device: Device, works: tuple[StageWork, ...]) -> str:
    return device.bound(max(works, key=device.seconds))


def crossover_tokens(*, weight_bytes: int, bytes_per_token: int) -> float:
    """Return the cached tokens, over the whole batch, whose bytes equal those of the weights.

    Beyond it a decode step moves more cache than weights. Llama 3.1 70B and 8B in bf16:

    >>> round(crossover_tokens(weight_bytes=2 * 70_553_706_496, bytes_per_token=327_680))
    430626
    >>> crossover_tokens(weight_bytes=2 * 8_030_261_248, bytes_per_token=131_072)
    122532.0625
    """
    weights = whole_number("weight_bytes", weight_bytes)
    return weights / whole_number("bytes_per_token", bytes_per_token)


def crossover_batch(*, weight_bytes: int, bytes_per_token: int, context: int) -> int:
    """Return the first batch of requests of `context` tokens that moves more cache than weights.

    >>> crossover_batch(weight_bytes=2 * 8_030_261_248, bytes_per_token=131_072, context=8192)
    15
    """
    weights = whole_number("weight_bytes", weight_bytes)
    each = whole_number("bytes_per_token", bytes_per_token) * whole_number("context", context)
    return weights // each + 1


def seconds_to_ship(num_bytes: int, *, link_bytes_per_second: float, links: int = 1) -> float:
    """Return the time to send bytes over `links` equal links at once, at their full rate.

    One 128K request of Llama 3.1 70B over one 400 Gb/s link, and over eight:

    >>> round(seconds_to_ship(42_949_672_960, link_bytes_per_second=50e9), 3)
    0.859
    >>> round(seconds_to_ship(42_949_672_960, link_bytes_per_second=50e9, links=8), 3)
    0.107
    """
    count = whole_number("num_bytes", num_bytes, minimum=0)
    rate = positive("link_bytes_per_second", link_bytes_per_second)
    return count / (rate * whole_number("links", links))

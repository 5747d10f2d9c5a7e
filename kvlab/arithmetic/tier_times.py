"""How long a conversation's cache takes to come back from a tier, and to be computed again.

All times are lower bounds: every link at its full rate, every GPU at its roof. A cache on disk
passes a PCIe link as well; the drive is the slower part and is what counts. Left out: opening
files, checking hashes, waiting behind others.
"""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.plan_deployment import Deployment, ModelSource
from kvlab.arithmetic.preemption import PCIE_GB_S
from kvlab.arithmetic.roofline import Device, seconds_to_ship, time_prefill

_LANES = "16 lanes, one direction, nominal (kvlab.arithmetic.preemption)"
_FOUR = "four of the 16 lanes: no drive is faster than its link"
_DRIVE = (
    "Samsung 990 PRO, a fast drive of its generation: sequential reads up to 7,450 MB/s as its"
    " maker says (slashcam.com news 17407, 28 August 2022)"
)


@dataclass(frozen=True, slots=True)
class TierLink:
    """The way back from a tier: bytes a second of one link, or of one drive."""

    name: str
    bytes_per_second: float
    per_rank: bool  # whether every GPU has one of its own
    source: str


LINKS = (
    TierLink("host memory over PCIe 5.0 x16", PCIE_GB_S[5] * 1e9, True, _LANES),
    TierLink("host memory over PCIe 4.0 x16", PCIE_GB_S[4] * 1e9, True, _LANES),
    TierLink("NVMe, limit of PCIe 5.0 x4", PCIE_GB_S[5] / 4 * 1e9, False, _FOUR),
    TierLink("NVMe, limit of PCIe 4.0 x4", PCIE_GB_S[4] / 4 * 1e9, False, _FOUR),
    TierLink("NVMe, a PCIe 4.0 drive", 7.45e9, False, _DRIVE),
)


@dataclass(frozen=True, slots=True)
class TierTime:
    """Seconds for one way back, and how many times quicker than computing again (below 1: not)."""

    link: TierLink
    seconds: float
    speedup: float


@dataclass(frozen=True, slots=True)
class TierTimes:
    """One conversation of `tokens`: its bytes, each way back, and the prefill in its place.

    `break_even_bytes_per_second` is the rate, over all links together, at which fetching takes as
    long as computing again: a slower tier is not worth asking.
    """

    tokens: int
    num_bytes: int
    prefill_seconds: float
    rows: tuple[TierTime, ...]
    break_even_bytes_per_second: float


def tier_times(
    model: ModelSource, *, tokens: int, gpu: str, tp: int = 1, drives: int = 1, links: int = 0
) -> TierTimes:
    """Return what bringing back `tokens` tokens of cache takes, against a prefill on `tp` GPUs.

    `links` is the number of PCIe links used at once; 0: one for each GPU. `drives` NVMe drives
    share the reading.

    50,000 tokens of Llama 3.1 70B on eight H100: 16.4 GB.

    >>> times = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=8)
    >>> times.num_bytes, round(times.prefill_seconds, 2)
    (16384000000, 1.28)
    >>> [round(row.seconds, 3) for row in times.rows]
    [0.032, 0.064, 1.024, 2.048, 2.199]
    >>> round(times.break_even_bytes_per_second / 1e9, 1)
    12.8
    """
    count = whole_number("tokens", tokens)
    many = {True: whole_number("links", links, minimum=0) or tp, False: drives}
    deployment = Deployment.of(model, tp=tp)
    num_bytes = deployment.request(count).whole.request_bytes
    prefill = time_prefill(deployment, Device.of(gpu), prompt_tokens=count).seconds
    rows = []
    for link in LINKS:
        seconds = seconds_to_ship(
            num_bytes, link_bytes_per_second=link.bytes_per_second, links=many[link.per_rank]
        )
        rows.append(TierTime(link, seconds, prefill / seconds))
    return TierTimes(count, num_bytes, prefill, tuple(rows), num_bytes / prefill)

"""How fast this device reads memory and multiplies: a measurement of about a second.

Both numbers are what this process reached, not what a data sheet promises; other programs that
run at the same time lower them. Left out: caches of the processor, latency, other dtypes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from kvlab.arithmetic.roofline import Device
from kvlab.errors import Unsupported
from kvlab.model.device import choose_device, choose_dtype, device_name
from kvlab.model.fast_choice import read_bandwidth

DTYPES: tuple[torch.dtype, ...] = (
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.int8,
)
"""The number formats of the course, from wide to narrow."""


@dataclass(frozen=True)
class DeviceSpeed:
    """What was reached: bytes read a second, floating-point operations a second."""

    device: str
    dtype: str
    bytes_per_second: float
    flops_per_second: float

    def seconds_to_read(self, num_bytes: int) -> float:
        """Return the least time in which so many bytes can be read.

        >>> DeviceSpeed("cpu", "float32", 20e9, 100e9).seconds_to_read(10**10)
        0.5
        """
        return num_bytes / self.bytes_per_second

    def as_device(self) -> Device:
        """Return the device of the roofline that these two rates make.

        >>> DeviceSpeed("cpu", "float32", 20e9, 100e9).as_device().ridge
        5.0
        """
        return Device(self.device, self.flops_per_second, self.bytes_per_second)


def dtype_rows() -> list[list[str]]:
    """Return each number format with its bits, its bytes and the bytes of a million numbers.

    >>> dtype_rows()[1]
    ['bfloat16', '16', '2', '2,000,000']
    """
    sizes = [(str(kind).removeprefix("torch."), kind.itemsize) for kind in DTYPES]
    return [[name, str(8 * size), str(size), f"{size * 10**6:,}"] for name, size in sizes]


def measure_device(
    device: str | torch.device | None = None, *, seconds: float = 0.4
) -> DeviceSpeed:
    """Measure reading and multiplying, `seconds` each; the best of several runs counts.

    Reading is a matrix times one vector, as in decoding one token: every number of the matrix is
    read once and used once. On a CPU a loop that does nothing but read counts too, if it is
    faster. Multiplying is a matrix times a matrix, as in a long prefill.
    """
    chosen = choose_device(device)
    dtype = choose_dtype(chosen)
    rows, side = (32_768, 8192) if chosen.type == "cuda" else (8192, 1024)
    with torch.no_grad():
        tall = torch.ones(rows, 8192, device=chosen, dtype=dtype)
        vector = torch.ones(8192, device=chosen, dtype=dtype)
        read = _best_seconds(lambda: tall @ vector, chosen, seconds)
        bytes_per_second = tall.nbytes / read
        if chosen.type == "cpu":
            bytes_per_second = max(bytes_per_second, _read_alone(tall))
        square = torch.ones(side, side, device=chosen, dtype=dtype)
        multiply = _best_seconds(lambda: square @ square, chosen, seconds)
    return DeviceSpeed(
        device=f"{chosen} ({device_name(chosen)})",
        dtype=str(dtype).removeprefix("torch."),
        bytes_per_second=bytes_per_second,
        flops_per_second=2 * side**3 / multiply,
    )


def _read_alone(numbers: Tensor) -> float:
    """Return the bytes a second of the fast path's reading loop, 0 where it can't be compiled."""
    try:
        return read_bandwidth(numbers)
    except Unsupported:
        return 0.0


def _best_seconds(work: Callable[[], Tensor], device: torch.device, seconds: float) -> float:
    """Return the shortest run of those that fit into `seconds` (three at least), one left out."""

    def run() -> float:
        started = perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return perf_counter() - started

    run()
    times: list[float] = []
    end = perf_counter() + seconds
    while len(times) < 3 or perf_counter() < end:
        times.append(run())
    return min(times)

"""What machine this is, as far as an engine cares: processor, cores, memory; no torch."""

import os
import platform
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Machine:
    """A processor's name, the cores that we may use, memory in bytes, and the system.

    `fast_bits` are the instruction sets that decide what an engine on the processor can do.
    """

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    fast_bits: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """The machine in a few words."""
        return f"{self.cpu}, {self.cores} cores, {self.memory_bytes / 2**30:.0f} GiB"

    def to_dict(self) -> dict[str, Any]:
        """Return the machine for a file."""
        return asdict(self)


FAST_BITS = ("avx2", "avx512f", "avx512_bf16", "amx_tile")


def this_machine() -> Machine:
    """Return the machine on which this runs.

    >>> this_machine().cores >= 1
    True
    """
    flags = _cpu_field("flags").split()
    name = _cpu_field("model name") or platform.processor() or platform.machine()
    system = f"{platform.system()} {platform.machine()}"
    fast = tuple(bit for bit in FAST_BITS if bit in flags)
    return Machine(name, len(usable_cores()), memory_bytes(), system, fast)


def usable_cores() -> list[int]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def memory_bytes() -> int:
    """Return the memory of the machine in bytes; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def can_cache_fp8(machine: Machine) -> bool:
    """Whether vLLM on this processor takes a cache in FP8: it needs AVX-512 or AMX.

    >>> can_cache_fp8(Machine("old", 2, 0, "Linux x86_64", ("avx2",)))
    False
    """
    return bool({"avx512f", "amx_tile"} & set(machine.fast_bits))


def busy_seconds() -> float | None:
    """Return the seconds for which all cores together have worked since the start (Linux)."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return None
    user, nice, system, _, _, irq, soft = (int(n) for n in first.split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and its ended children (Linux; else 0)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Others:
    """How much of the processor other programs took meanwhile: what makes times worth little."""

    def __init__(self) -> None:
        self._busy, self._own = busy_seconds(), cpu_seconds(os.getpid())
        self._started = time.monotonic()

    def share(self, pids: Iterable[int]) -> float:
        """Return the share of all cores' time since the start that neither we nor `pids` took.

        >>> 0 <= Others().share([]) <= 1
        True
        """
        now = busy_seconds()
        if now is None or self._busy is None:
            return 0.0
        ours = cpu_seconds(os.getpid()) - self._own + sum(cpu_seconds(pid) for pid in pids)
        whole = max(1e-9, (time.monotonic() - self._started) * (os.cpu_count() or 1))
        return min(1.0, max(0.0, (now - self._busy - ours) / whole))


def _cpu_field(name: str) -> str:
    try:
        with CPU_INFO.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() == name:
                    return " ".join(value.split())
    except OSError:
        pass
    return ""

"""Memory and processor time of other processes, read from Linux's /proc.

PSS counts a page that n processes share as an n-th of a page for each, so the PSS of all processes
adds up to what they take together. Private pages are a process's own.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KIB = 1024
WEIGHTS = "model.safetensors"
FIELD = re.compile(r"^(Rss|Pss|Private_Clean|Private_Dirty|Shared_Clean|Shared_Dirty): +(\d+)")
SAMPLE_SECONDS = 0.5
SERVER_SECONDS = 15.0


@dataclass(frozen=True)
class Mapped:
    """The part of a process's memory that maps the model's file, in bytes."""

    rss: int
    pss: int
    private_dirty: int


@dataclass(frozen=True)
class Memory:
    """A process's memory in bytes; `weights` is what maps the model's file, if any."""

    pss: int
    private: int
    weights: Mapped | None = None

    @staticmethod
    def sum_of(parts: Sequence[Mapped]) -> dict[str, int]:
        """Return the sum over processes of each number of the mapped weights."""
        names = ("rss", "pss", "private_dirty")
        return {name: sum(getattr(part, name) for part in parts) for name in names}


def memory_of(pid: int) -> Memory:
    """Return the memory of a process and of its mapped weights."""
    whole = fields(Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8"))
    text, maps = Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8"), list[dict[str, int]]()
    for block in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", text):
        if WEIGHTS in block.split("\n", 1)[0]:
            maps.append(fields(block))
    weights = None
    if maps:
        total = {name: sum(one.get(name, 0) for one in maps) for name in maps[0]}
        weights = Mapped(total["Rss"], total["Pss"], total["Private_Dirty"])
    return Memory(whole["Pss"], whole["Private_Clean"] + whole["Private_Dirty"], weights)


def fields(text: str) -> dict[str, int]:
    """Return the fields of a smaps block in bytes.

    >>> fields("Rss:  8 kB\\nPss: 4 kB")
    {'Rss': 8192, 'Pss': 4096}
    """
    found = (FIELD.match(line) for line in text.split("\n"))
    return {match[1]: int(match[2]) * KIB for match in found if match}


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, in seconds."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def free_bytes() -> int:
    """Return the memory that new processes could use now."""
    text = Path("/proc/meminfo").read_text(encoding="utf-8")
    found = re.search(r"^MemAvailable: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * KIB if found else 0


class Watch:
    """Looks at the PSS of all `pids` together every half second; `peak` is the largest sum."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            total = 0
            for pid in list(self.pids):
                with contextlib.suppress(OSError, KeyError):  # it has just ended
                    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
                    total += fields(text)["Pss"]
            self.peak = max(self.peak, total)


def server_memory() -> int:
    """Return the PSS of one JupyterLab server without a kernel, after it has come up."""
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--port=0", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", "--log-level=ERROR"]
    server = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        time.sleep(SERVER_SECONDS)
        return memory_of(server.pid).pss
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=20)

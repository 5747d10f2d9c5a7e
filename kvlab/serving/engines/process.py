"""An engine as a process: started behind a guard, its output kept, ended for certain.

The guard (`guard.py`) holds the other end of a pipe of ours. However we go, by `stop`, by an error
or by a kill -9, the pipe closes, and the guard ends the engine with all that it started.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from kvlab.serving.engines.faults import EngineFailed

GUARD = Path(__file__).with_name("guard.py")
FIRST_LINES, LAST_LINES = 3000, 500
NOT_PASSED_ON = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "OMP_NUM_THREADS")
"""What would lead the engine's Python back to ours, or take its cores away."""

MARK = "KVLAB_ENGINE"
"""Every process of an engine inherits this variable, so that none can hide."""


class EngineProcess:
    """One running program with its guard; `lines` are what it printed, the middle left out.

    `grace` is how many seconds it has to end by itself once it is asked to.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        environ: Mapping[str, str] | None = None,
        *,
        grace: float = 10.0,
    ) -> None:
        self.name, self.command, self.grace = name, [str(word) for word in command], grace
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        clean = {k: v for k, v in os.environ.items() if k not in NOT_PASSED_ON}
        self._mark = f"{os.getpid()}-{uuid4().hex}"
        self._folder = tempfile.mkdtemp(prefix="kvlab-engine-")
        variables = clean | dict(environ or {}) | {MARK: self._mark, "TMPDIR": self._folder}
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), str(grace), self._folder, *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
        )
        # The thread does not know this object: whoever forgets it ends the engine.
        places = (self._guard.stdout, self._first, self._last)
        self._reader = threading.Thread(target=_read, args=places, daemon=True)
        self._reader.start()
        assert self._guard.stdin is not None
        weakref.finalize(self, _let_go, self._guard.stdin)

    @property
    def lines(self) -> list[str]:
        """What was printed so far: the first lines and the last ones."""
        return [*self._first, *self._last]

    @property
    def is_running(self) -> bool:
        """Whether the engine, or its guard that is ending it, still runs."""
        return self._guard.poll() is None

    @property
    def guard_pid(self) -> int:
        """The number of the guard's process."""
        return self._guard.pid

    def pids(self) -> list[int]:
        """Return the processes of the engine, the guard left out; empty where none can be told."""
        return descendants(self._guard.pid)

    def rss_bytes(self) -> int | None:
        """Return the resident bytes of all its processes together; None where unknown.

        Pages that processes share count once for each, so it is an upper bound.
        """
        sizes = [size for pid in self.pids() if (size := resident_bytes(pid)) is not None]
        return sum(sizes) if sizes else None

    def wait_until(
        self,
        is_ready: Callable[[], bool],
        *,
        timeout: float,
        on_wait: Callable[[float], None] | None = None,
        every: float = 0.25,
    ) -> float:
        """Wait until `is_ready()`; return the seconds it took. Raises `EngineFailed`."""
        started = time.monotonic()
        while True:
            seconds = time.monotonic() - started
            if not self.is_running:
                self._reader.join(timeout=5)
                raise EngineFailed(f"{self.name} ended with {self._guard.returncode} at its start")
            if is_ready():
                return seconds
            if seconds > timeout:
                raise EngineFailed(f"{self.name} was not ready after {timeout:g} s")
            if on_wait is not None:
                on_wait(seconds)
            time.sleep(every)

    def stop(self) -> None:
        """End the engine and wait until nothing of it is left; may be called again."""
        assert self._guard.stdin is not None
        _let_go(self._guard.stdin)
        try:
            self._guard.wait(timeout=3 * self.grace + 5)
        except subprocess.TimeoutExpired:
            left = descendants(self._guard.pid)
            for pid in [*left, self._guard.pid]:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, 9)
            self._guard.wait(timeout=10)
        for pid in marked(self._mark):  # only where the guard itself was killed
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, 9)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._reader.join(timeout=5)


def _let_go(held: IO[bytes]) -> None:
    """Close what the guard waits for."""
    with suppress(OSError):
        held.close()


def _read(stream: IO[bytes], first: list[str], last: deque[str]) -> None:
    """Keep what is printed: the first lines, then the last ones."""
    with stream:
        for raw in stream:
            line = raw[:20_000].decode("utf-8", errors="replace").rstrip("\r\n")
            (first if len(first) < FIRST_LINES else last).append(line)


def free_port() -> int:
    """Return a port of this machine's loopback that nobody uses now.

    >>> 1024 <= free_port() < 65536
    True
    """
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def is_port_free(port: int) -> bool:
    """Return whether nobody listens on a port of this machine's loopback."""
    with socket.socket() as caller:
        caller.settimeout(1.0)
        return caller.connect_ex(("127.0.0.1", port)) != 0


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and theirs (Linux; empty elsewhere)."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text(encoding="ascii").split()):
                found += [child, *descendants(child)]
    return found


def marked(mark: str) -> list[int]:
    """Return the processes that carry an engine's mark (Linux; empty elsewhere)."""
    found, wanted = [], f"{MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def resident_bytes(pid: int) -> int | None:
    """Return the resident bytes of one process (Linux; None elsewhere, or when it is gone)."""
    try:
        text = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    except OSError:
        return None
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

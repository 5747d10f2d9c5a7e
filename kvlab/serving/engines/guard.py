"""Starts one program and makes sure that it never outlives whoever asked for it.

    python guard.py GRACE_SECONDS TEMPORARY_FOLDER PROGRAM ARGUMENT...

Runs alone, with Python's own library. Whoever starts it holds its standard input: when that closes
(an orderly stop, an error, or a kill -9 of the holder) the program, all that it started, and then
the guard itself end, and the temporary folder goes. Where the guard is killed, the kernel kills
the program (Linux).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

POLL_SECONDS = 0.5
SHARED = Path("/dev/shm")  # where Linux keeps memory that processes share
SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36  # prctl's numbers


def main(arguments: list[str]) -> int:
    """Run the program until it ends or the holder lets go; return its exit status."""
    grace, folder, command = float(arguments[0]), arguments[1], arguments[2:]
    prctl(SET_SUBREAPER, 1)  # whoever loses its parent becomes ours, so that none is lost
    let_go = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: let_go.set())
    parent, seen, others = os.getppid(), set[str](), {str(path) for path in SHARED.glob("*")}
    options = {} if os.name == "nt" else {"preexec_fn": die_with_guard, "start_new_session": True}
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    # Only now: a process of several threads must not fork.
    threading.Thread(target=wait_for_holder, args=(let_go,), daemon=True).start()
    try:
        while program.poll() is None and os.getppid() == parent:
            seen |= shared_memory()
            if let_go.wait(POLL_SECONDS):
                break
    finally:
        seen |= shared_memory()
        end(program, grace)
        for name in seen - others:  # what a killed program could not take away
            Path(name).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def shared_memory() -> set[str]:
    """Return the files of shared memory that our descendants hold now (Linux)."""
    found: set[str] = set()
    waiting = list(children())
    while waiting:
        home = Path("/proc") / str(waiting.pop())
        for task in home.glob("task/*/children"):
            with contextlib.suppress(OSError):
                waiting += map(int, task.read_text(encoding="ascii").split())
        with contextlib.suppress(OSError):
            lines = (home / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
            found |= {x for line in lines if (x := line[line.find("/") :]).startswith(f"{SHARED}/")}
    return {name for name in found if not name.endswith("(deleted)")}


def wait_for_holder(let_go: threading.Event) -> None:
    """Wait until nobody holds our standard input any more, and say so."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    let_go.set()


def end(program: "subprocess.Popen[bytes]", grace: float) -> None:
    """Ask the program to end, then insist; then end all that it left behind."""
    if os.name == "nt":
        subprocess.call(["taskkill", "/F", "/T", "/PID", str(program.pid)])
        program.wait()
        return
    signal_group(program.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(timeout=grace)
    signal_group(program.pid, signal.SIGKILL)
    program.wait()
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.05)


def signal_group(pid: int, number: int) -> None:
    """Send a signal to all processes of the program's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def children() -> Iterator[int]:
    """Yield our children; those of ended ones come to us on Linux."""
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, task.read_text(encoding="ascii").split())


def die_with_guard() -> None:
    """In the program, before it begins: let the kernel kill it when the guard is gone."""
    prctl(SET_DEATH_SIGNAL, signal.SIGKILL)


def prctl(option: int, value: int) -> None:
    """Set a property of this process where the system knows it (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

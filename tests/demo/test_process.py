"""`kvlab demo` as a process: it says where it is, and stops cleanly however it is told to."""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX systems")
COMMAND = (sys.executable, "-m", "kvlab.cli", "demo", "--no-browser")
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\S+/")
PATIENCE = 60


def fetch(address: str, path: str = "") -> str:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(address + path, timeout=PATIENCE) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start a demo and give its process and its address; nothing of it is left afterwards."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*COMMAND, *arguments], **options) as process:
        try:
            line = process.stdout.readline()
            assert ADDRESS.search(line), line + process.stderr.read()
            yield process, ADDRESS.search(line).group()
        finally:
            process.kill()


def children(pid: int) -> str:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return found.read_text(encoding="ascii") if found.exists() else ""


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(autouse=True)
def hangups_are_heard() -> Iterator[None]:
    """Under `nohup` a hangup is ignored, by our children too: here it must not be."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_and_frees_its_port(number: signal.Signals) -> None:
    with running("follow-token") as (process, address):
        port = int(ADDRESS.search(address)[1])
        assert "<title>kvlab demo" in fetch(address) and children(process.pid) == ""
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (0, "")
        assert out.endswith(f"Stopped; port {port} is free again.\n") and is_free(port)


def test_a_second_demo_at_the_same_port_gets_one_line() -> None:
    with running("follow-token") as (_, address):
        port = ADDRESS.search(address)[1]
        command = [*COMMAND, "recompute", "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and done.stdout == ""
        assert re.fullmatch(rf"kvlab: port={port}: is in use, perhaps [^\n]*\n", done.stderr)
        assert "<title>" in fetch(address)


def test_a_race_under_way_does_not_keep_it_from_stopping() -> None:
    with running("race") as (process, address):
        body, kind = b'{"name": "Live: tiny"}', {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}preset", data=body, headers=kind)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert '"busy": true' in direct.open(request, timeout=PATIENCE).read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0 and process.stderr.read() == ""


def test_a_closed_terminal_stops_it() -> None:
    import pty

    pid, terminal = pty.fork()
    if pid == 0:  # the demo, with a terminal of its own
        os.execv(sys.executable, [*COMMAND, "follow-token"])
    try:
        shown, until = "", time.monotonic() + PATIENCE
        while "Ctrl+C" not in shown and time.monotonic() < until:
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 4096).decode()
        port = int(ADDRESS.search(shown)[1])
        os.close(terminal)
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            assert time.monotonic() < until, "it outlived its terminal"
            time.sleep(0.05)
        assert is_free(port)
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)

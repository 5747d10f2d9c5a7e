"""Run `make lab` as a learner does, see that JupyterLab answers with its token, and stop it.

Python's own library alone. It leaves out what the page shows: the browser tests look at that.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from queue import Empty, Queue

from environment import ROOT
from lab_command import START

PATIENCE = 1800  # seconds: the first run installs everything
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\S*token=(\w+)")


def main() -> int:
    """Start the lab, ask it, stop it; return 0 when it answered as it should."""
    port = free_port()
    options = f"--port={port} --ServerApp.port_retries=0 --no-browser"
    lab = subprocess.Popen(
        ["make", "lab"], cwd=ROOT, text=True, encoding="utf-8", errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=os.environ | {"KVLAB_LAB_ARGS": options}, start_new_session=True,
    )  # fmt: skip
    try:
        token = read_token(lab, port)
        return judge(f"http://127.0.0.1:{port}", token)
    except TimeoutError as error:
        print(f"check_lab: {error}", file=sys.stderr)
        return 1
    finally:
        stop(lab)


def free_port() -> int:
    """Return a port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read_token(lab: "subprocess.Popen[str]", port: int) -> str:
    """Pass on what the lab prints until it names its address; return the token in it."""
    lines: Queue[str] = Queue()
    threading.Thread(target=pass_on, args=(lab, lines), daemon=True).start()
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        with contextlib.suppress(Empty):
            found = ADDRESS.search(lines.get(timeout=1))
            if found and found.group(1) == str(port):
                return found.group(2)
        if lab.poll() is not None and lines.empty():
            raise TimeoutError(f"make lab ended with {lab.returncode} before it named its address")
    raise TimeoutError(f"no address after {PATIENCE} s")


def pass_on(lab: "subprocess.Popen[str]", lines: "Queue[str]") -> None:
    """Print each line of the lab's, and queue it."""
    for line in lab.stdout or ():
        print(line, end="", flush=True)
        lines.put(line)


def judge(base: str, token: str) -> int:
    """Ask with and without the token; say what came back."""
    answers = {
        "status, with the token": (ask(f"{base}/api/status?token={token}"), 200),
        "status, without": (ask(f"{base}/api/status"), 403),
        "chapter 00": (ask(f"{base}/lab/tree/{START}?token={token}"), 200),
        "chapter 00, as a file": (ask(f"{base}/api/contents/{START}?content=0&token={token}"), 200),
    }
    for what, (got, wanted) in answers.items():
        print(f"{what}: {got}{'' if got == wanted else f', not {wanted}'}", flush=True)
    return int(any(got != wanted for got, wanted in answers.values()))


def ask(address: str) -> int:
    """Return the status with which a server answers; 0 when it does not."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(60):
        try:
            return int(opener.open(address, timeout=10).status)
        except urllib.error.HTTPError as error:
            return int(error.code)
        except OSError:
            time.sleep(0.5)
    return 0


def stop(lab: "subprocess.Popen[str]") -> None:
    """End the lab and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(lab.pid, signal.SIGTERM)
    try:
        lab.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(lab.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())

"""An engine's process ends for certain: on stop, on errors, and when its holder is killed."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live_engines import STAND_IN, is_alive, wait_gone

from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.faults import EngineFailed, NoAnswer
from kvlab.serving.engines.process import EngineProcess, free_port, is_port_free

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

HOLDER = """
import sys, time
from kvlab.serving.engines.process import EngineProcess, free_port
port = free_port()
process = EngineProcess("stand-in", [sys.executable, sys.argv[1], str(port), sys.argv[2]], grace=1)
while not any("stand-in" in line for line in process.lines):
    time.sleep(0.02)
print(port, process.guard_pid, *process.pids(), flush=True)
time.sleep(600)
"""


def started(how: str = "", grace: float = 1.0) -> tuple[EngineProcess, int]:
    """Start the stand-in, ready to answer."""
    port = free_port()
    command = [sys.executable, STAND_IN, str(port), how]
    process = EngineProcess("stand-in", command, grace=grace)
    endpoint = Endpoint(f"http://127.0.0.1:{port}")

    def answers() -> bool:
        try:
            return endpoint.get("/health").status == 200
        except NoAnswer:
            return False

    process.wait_until(answers, timeout=30, every=0.02)
    return process, port


@pytest.mark.parametrize("how", ["", "stubborn"])
def test_stop_leaves_no_process_and_a_free_port(how: str) -> None:
    process, port = started(how)
    pids = [process.guard_pid, *process.pids()]
    assert (
        len(pids) == 4 + (how == "stubborn") and all(map(is_alive, pids)) and not is_port_free(port)
    )
    process.stop()
    assert wait_gone(pids, 0.5) == []
    assert is_port_free(port) and not process.is_running
    process.stop()


@pytest.mark.parametrize("how", ["", "stubborn"])
def test_a_killed_holder_takes_the_engine_along(how: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, STAND_IN, how], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    port, *pids = map(int, holder.stdout.readline().split())
    assert len(pids) == 4 + (how == "stubborn") and all(map(is_alive, pids))
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert wait_gone(pids) == []
    assert is_port_free(port)


def test_a_killed_guard_takes_the_program_along_and_stop_finds_the_rest() -> None:
    process, port = started()
    pids = process.pids()
    os.kill(process.guard_pid, signal.SIGKILL)
    assert wait_gone(pids[:1], 5) == []
    process.stop()
    assert wait_gone(pids, 1) == [] and is_port_free(port)


def test_what_a_killed_engine_leaves_in_memory_and_on_disk_is_taken_away() -> None:
    process, _ = started("stubborn")
    words = next(line for line in process.lines if line.startswith("holds")).split()
    left = [Path(word) for word in words[1:]]
    assert len(left) == 2 and all(path.exists() for path in left)
    time.sleep(0.8)  # the guard looks twice a second
    process.stop()
    assert [path for path in left if path.exists()] == []


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_engine_that_is_forgotten_ends_as_a_cell_that_is_run_again_forgets_it() -> None:
    process, port = started()
    pids = [process.guard_pid, *process.pids()]
    del process
    gc.collect()
    assert wait_gone(pids, 10) == [] and is_port_free(port)


def test_an_interrupt_while_waiting_is_passed_on_and_stop_ends_it() -> None:
    process = EngineProcess(
        "stand-in", [sys.executable, STAND_IN, str(free_port()), "silent"], grace=1
    )

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.wait_until(lambda: False, timeout=30, on_wait=interrupt)
    pids = [process.guard_pid, *process.pids()]
    process.stop()
    assert wait_gone(pids, 0.5) == []


def test_a_program_that_ends_is_a_failure_with_its_words() -> None:
    process = EngineProcess("stand-in", [sys.executable, STAND_IN, str(free_port()), "fails"])
    with pytest.raises(EngineFailed, match="stand-in ended with 3 at its start"):
        process.wait_until(lambda: False, timeout=30)
    assert "No common block size for 16" in process.lines[-1]
    process.stop()


def test_one_that_is_never_ready_is_given_up() -> None:
    process = EngineProcess(
        "stand-in", [sys.executable, STAND_IN, str(free_port()), "silent"], grace=1
    )
    with pytest.raises(EngineFailed, match=r"stand-in was not ready after 0\.3 s"):
        process.wait_until(lambda: False, timeout=0.3, every=0.05)
    process.stop()


def test_our_paths_and_threads_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    show = "import os; print(os.environ.get('PYTHONPATH'), os.environ.get('OMP_NUM_THREADS'))"
    process = EngineProcess("show", [sys.executable, "-c", f"{show}; print(os.environ['A'])"],
                            {"A": "b"})  # fmt: skip
    with pytest.raises(EngineFailed):
        process.wait_until(lambda: False, timeout=30)
    assert process.lines == ["None None", "b"]
    process.stop()


def test_the_resident_bytes_are_those_of_all_processes() -> None:
    process, _ = started()
    total = process.rss_bytes()
    own = Path(f"/proc/{process.pids()[0]}/statm").read_text(encoding="ascii").split()[1]
    process.stop()
    assert total is not None and total > int(own) * os.sysconf("SC_PAGE_SIZE")
    assert process.rss_bytes() is None

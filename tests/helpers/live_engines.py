"""Which engines are tested live, and what is left of a process."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kvlab.serving.engines.environments import find_environment

STAND_IN = Path(__file__).resolve().with_name("engine_stand_in.py")


def asked_for(engine: str) -> bool:
    """Return whether `make test-engines` asked for this engine."""
    return engine in os.environ.get("KVLAB_TEST_ENGINES", "").split(",")


def need_engine(engine: str, *, only_when_asked: bool = False) -> None:
    """Skip with a reason, unless the engine is here; fail where it was asked for and is not."""
    if only_when_asked and not asked_for(engine):
        pytest.skip(f"{engine} takes minutes: make test-engines runs it")
    if find_environment(engine) is None:
        if asked_for(engine):
            pytest.fail(f"{engine} was asked for and is not installed")
        pytest.skip(f"{engine} is not installed: make engine-{engine}")


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be counted is gone."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return "\nState:\tZ" not in status
    return False


def wait_gone(pids: list[int], seconds: float = 20.0) -> list[int]:
    """Wait until no process of `pids` runs; return those that still do."""
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left

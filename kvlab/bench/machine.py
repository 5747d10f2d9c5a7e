"""What the numbers were measured on: processor, memory, versions, threads, date.

torch is asked for its version and threads only where it is loaded already.
"""

from __future__ import annotations

import os
import platform
import sys
from datetime import date
from importlib import metadata
from typing import Any

from kvlab import __version__
from kvlab.arithmetic.units import GIB
from kvlab.doctor.machine import memory_bytes, usable_cores
from kvlab.serving.engines.machine import this_machine

PACKAGES = ("torch", "transformers", "numpy", "ipywidgets", "jupyterlab")


def describe_machine() -> dict[str, Any]:
    """Return the machine as plain data: names, sizes, versions, threads, and today's date.

    >>> sorted(describe_machine())[:4]
    ['cores', 'date', 'gpu', 'kvlab']
    """
    memory = memory_bytes()
    return {
        "date": date.today().isoformat(),
        "processor": this_machine().cpu,
        "cores": usable_cores(),
        "threads": thread_count(),
        "memory_gib": None if memory is None else round(memory / GIB, 1),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "gpu": gpu_name(),
        "python": platform.python_version(),
        "kvlab": __version__,
        "packages": {name: version_of(name) for name in PACKAGES},
    }


def machine_words(machine: dict[str, Any]) -> str:
    """Return the machine in one line.

    >>> "cores" in machine_words(describe_machine())
    True
    """
    packages = machine["packages"]
    versions = [f"{name} {packages[name]}" for name in ("torch", "transformers") if packages[name]]
    parts = [
        machine["processor"],
        f"{machine['cores']} cores, {machine['threads']} threads",
        f"{machine['memory_gib']} GiB",
        machine["gpu"] or "no GPU",
        f"Python {machine['python']}",
        *versions,
        f"kvlab {machine['kvlab']}",
        machine["date"],
    ]
    return ", ".join(parts)


def thread_count() -> int:
    """Return the threads that torch computes with; before it is loaded, those it will take."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(asked) if asked.isdigit() and int(asked) else usable_cores()


def gpu_name() -> str | None:
    """Return the name of the first CUDA device; None where torch sees none or is not loaded."""
    torch = sys.modules.get("torch")
    seen = torch is not None and torch.cuda.is_available()
    return torch.cuda.get_device_name(0) if seen else None


def version_of(package: str) -> str | None:
    """Return the version of an installed package, None where it is not here."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

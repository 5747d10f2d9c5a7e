"""The doctor's checks of the machine: Python, processor, memory, disk, device, models."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from kvlab._paths import user_dir
from kvlab.arithmetic.units import GB, GIB, format_bytes
from kvlab.doctor.report import Row
from kvlab.serving.engines.machine import usable_cores as core_numbers

_MEMORY_NEEDED = 3 * GIB
_DISK_NEEDED = 800_000_000  # bytes: SmolLM2 and its GGUF, and the wheel while it is unpacked


def machine() -> Iterator[Row]:
    """Yield Python, operating system, cores and memory."""
    version = platform.python_version()
    yield Row("python", version, sys.version_info >= (3, 11), _advice_python())
    yield Row("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Row("processor cores", str(usable_cores()))
    memory = memory_bytes()
    if memory is None:
        yield Row("memory", "unknown on this system")
        return
    enough = memory >= _MEMORY_NEEDED
    advice = "" if enough else f"close other programs; SmolLM2 wants {_MEMORY_NEEDED // GIB} GiB"
    yield Row("memory", format_bytes(memory), enough, advice)


def _advice_python() -> str:
    return "" if sys.version_info >= (3, 11) else "install Python 3.11 or newer"


def usable_cores() -> int:
    """Return the cores this process may use; a container may have fewer than the machine."""
    return len(core_numbers())


def memory_bytes() -> int | None:
    """Return the memory of the machine or of its container, in bytes; None where unknown."""
    found: list[int] = []
    try:
        import psutil

        found.append(psutil.virtual_memory().total)
    except ImportError:
        names = getattr(os, "sysconf_names", {})  # not on Windows
        if "SC_PHYS_PAGES" in names:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):  # cgroup 2 and 1
        path = Path("/sys/fs/cgroup") / limit
        text = path.read_text(encoding="ascii").strip() if path.is_file() else ""
        if text.isdigit():
            found.append(int(text))
    return min(found, default=None)


def storage() -> Iterator[Row]:
    """Yield kvlab's own folder and the room on its disk."""
    from kvlab.model.weights import is_available

    folder = user_dir()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free, have = shutil.disk_usage(there).free, is_available("smollm2")
    enough = have or free >= _DISK_NEEDED
    advice = "" if enough else f"free {_DISK_NEEDED / GB:.1f} GB, or set KVLAB_HOME to another disk"
    yield Row("disk free", format_bytes(free), enough, advice)
    yield _folder(folder, there)


def _folder(folder: Path, there: Path) -> Row:
    """Return the row of kvlab's folder; one that a class shares may be read-only."""
    from kvlab.course.progress import default_path

    if os.access(there, os.W_OK):
        return Row("kvlab's folder", from_home(folder), True)
    own = default_path().parent
    place = next(path for path in (own, *own.parents) if path.exists())
    if own != folder and os.access(place, os.W_OK):
        return Row(
            "kvlab's folder", f"{from_home(folder)}, shared; answers: {from_home(own)}", True
        )
    advice = "set KVLAB_HOME to a folder of your own to keep progress"
    return Row("kvlab's folder", f"{from_home(folder)} (read-only)", False, advice)


def from_home(path: Path) -> str:
    """Write a path with `~` for the home folder, so that no report tells a person's name.

    >>> from_home(Path.home() / "kvlab").replace(chr(92), "/")
    '~/kvlab'
    """
    inside = path.is_relative_to(Path.home())
    return str(Path("~") / path.relative_to(Path.home())) if inside else str(path)


def device() -> Iterator[Row]:
    """Yield where models will run, in which dtype and why; this imports torch."""
    from kvlab.model.device import describe_device

    yield Row("device", describe_device(), True)


def models() -> Iterator[Row]:
    """Yield the models that load now, without a network."""
    from kvlab.model.bundled import BUNDLED
    from kvlab.model.weights import is_available

    advice = {"smollm2": "run `kvlab fetch smollm2`; the course goes on without it"}
    advice |= dict.fromkeys(BUNDLED, "install kvlab again: it comes with the package")
    for name, what_to_do in advice.items():
        here = is_available(name)
        yield Row(
            f"model {name}", "here" if here else "not here", here or None, what_to_do * (not here)
        )


def extras() -> Iterator[Row]:
    """Yield what is only noted: a C compiler, and that no network was asked."""
    compilers = [name for name in ("cc", "gcc", "clang", "cl") if shutil.which(name)]
    advice = "" if compilers else "nothing to do: only torch.compile would use one"
    yield Row("C compiler", compilers[0] if compilers else "none found", None, advice)
    yield Row("network", "not asked")

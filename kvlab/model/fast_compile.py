"""The C of the fast path: compiled for this processor once, and kept in the learner's folder.

Any C compiler will do (`CC`, else cc, gcc or clang). Without one, or on Windows, there is no
library and `library` says why.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import torch

from kvlab._paths import own_dir, user_dir
from kvlab.errors import Unsupported

_FOLDER = Path(__file__).parent
SOURCES = (
    "fast_step.c",
    "fast_layers.h",
    "fast_attention.h",
    "fast_products.h",
    "fast_numbers.h",
)
_FLAGS = ("-std=gnu11", "-O3", "-shared", "-fPIC", "-w")
_ATTEMPTS = (  # the first that compiles counts; not every clang knows OpenMP, nor every -march
    ("-march=native", "-fopenmp"),
    ("-march=native", "-pthread"),
    ("-fopenmp",),
    ("-pthread",),
)


def find_compiler() -> list[str] | None:
    """Return the command of a C compiler, or None where there is none."""
    if os.name != "posix":
        return None
    named = shlex.split(os.environ.get("CC", ""))
    for command in (named, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    return None


def fast_dir() -> Path:
    """Return the folder of what the fast path keeps: compiled code and measured choices.

    A class may share `KVLAB_HOME` read-only; then it is the learner's own.
    """
    shared = user_dir()
    there = next((folder for folder in (shared, *shared.parents) if folder.exists()), shared)
    return (shared if os.access(there, os.W_OK) else own_dir()) / "fast"


@lru_cache(maxsize=1)
def machine_key() -> str:
    """Return a short name of processor, torch and our C: compiled code is for these alone.

    >>> len(machine_key())
    16
    """
    read = getattr(torch.cpu, "get_capabilities", dict)  # absent before torch 2.11
    facts = [platform.machine(), platform.system(), torch.__version__, sorted(read().items())]
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        facts += sorted({line for line in lines if line.startswith(("model name", "flags"))})
    digest = hashlib.sha256(repr(facts).encode())
    for name in SOURCES:
        digest.update((_FOLDER / name).read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Return the compiled C, compiling it first where needed (about a second).

    Raises `Unsupported` where there is no compiler, or it fails.
    """
    path = fast_dir() / f"{machine_key()}.so"
    if not path.is_file():
        path = _compile(path)
    try:
        found = ctypes.CDLL(str(path))
    except OSError as error:
        raise Unsupported(f"fast path: {path} can't be loaded ({error})") from None
    found.fast_space.restype, found.fast_run.restype = ctypes.c_int64, None
    found.fast_read.restype = ctypes.c_float
    found.fast_read.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    return found


def _compile(path: Path) -> Path:
    """Compile beside `path`, then rename: nobody ever sees half a library."""
    compiler = find_compiler()
    if compiler is None:
        raise Unsupported("fast path: there is no C compiler here (cc, gcc or clang)")
    folder = _writable(path.parent)
    made, target = folder / f".{os.getpid()}-{path.name}", folder / path.name
    said = ""
    for attempt in _ATTEMPTS:
        command = [*compiler, *_FLAGS, *attempt, str(_FOLDER / SOURCES[0]), "-o", str(made), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as error:
            said = str(error)
            continue
        if done.returncode == 0:
            made.replace(target)
            return target
        said = done.stderr
    last = (said.strip().splitlines() or ["it said nothing"])[-1]
    raise Unsupported(f"fast path: {compiler[0]} does not compile it ({last})")


def _writable(folder: Path) -> Path:
    """Return `folder`, or where it can't be written (a class shares it) one for this process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="kvlab-fast-"))

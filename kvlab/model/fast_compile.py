"""The C of the fast path: compiled for this processor once, and kept in the learner's folder.

Any C compiler will do (`CC`, else cc, gcc or clang). Without one, or on Windows, there is no
library and `library` says why. Beside the library lies its hash: one that was cut short or damaged
is never loaded (a process would end by SIGBUS), it is made anew.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock

import torch

from kvlab._paths import own_dir, user_dir
from kvlab.errors import Unsupported
from kvlab.model.fast_compiler import FOLDER, SOURCES, compile_to, find_compiler

__all__ = ["fast_dir", "find_compiler", "library", "machine_key"]

_failed: dict[tuple[str | None, ...], str] = {}
_turn = Lock()


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
        digest.update((FOLDER / name).read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Return the compiled C, compiling it first where needed (about a second).

    Raises `Unsupported` where there is no compiler, or it fails; a compiler that failed is not
    asked again by this process.
    """
    path = fast_dir() / f"{machine_key()}.so"
    asked = (str(path), os.environ.get("CC"), os.environ.get("PATH"))
    with _turn:
        if asked in _failed:
            raise Unsupported(_failed[asked])
        try:
            return _kept(path) or _made(path)
        except Unsupported as error:
            _failed[asked] = str(error)
            raise


def _kept(path: Path) -> ctypes.CDLL | None:
    """Return the library made earlier; None where there is none, or it can't be used."""
    try:
        whole = _sum_file(path).read_text(encoding="utf-8") == _sum(path)
        return _load(path) if whole else None
    except (OSError, ValueError, Unsupported):
        return None


def _made(path: Path) -> ctypes.CDLL:
    """Compile beside `path`, then rename: nobody ever sees half a library."""
    with _writable(path.parent) as folder:
        target, part = folder / path.name, folder / f".{os.getpid()}-{path.name}"
        try:
            compile_to(part)
            said = _sum(part)
            _put(part, target)
            part.write_text(said, encoding="utf-8")
            _put(part, _sum_file(target))
        except OSError as error:
            raise Unsupported(f"fast path: {target} can't be written ({error})") from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return _load(target)


def _load(path: Path) -> ctypes.CDLL:
    try:
        found = ctypes.CDLL(str(path))
        found.fast_space.restype, found.fast_run.restype = ctypes.c_int64, None
        found.fast_read.restype = ctypes.c_float
    except (OSError, AttributeError) as error:  # no library, or one without our names
        raise Unsupported(f"fast path: {path} can't be loaded ({error})") from None
    found.fast_read.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    return found


def _sum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _sum(path: Path) -> str:
    content = path.read_bytes()
    return f"{hashlib.sha256(content).hexdigest()} {len(content)}\n"


def _put(part: Path, target: Path) -> None:
    """Rename a finished file to its place; a folder that lies there is moved aside."""
    if target.is_dir() and not target.is_symlink():
        target.rename(target.with_name(f"{target.name}.moved-{os.getpid()}"))
    part.replace(target)


@contextmanager
def _writable(folder: Path) -> Iterator[Path]:
    """Give `folder`, or where it can't be written (a class shares it) one for this process.

    That one goes again: what was loaded from it stays in memory.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            own = None
    except OSError:
        own = _temporary()
    try:
        yield own or folder
    finally:
        if own:
            shutil.rmtree(own, ignore_errors=True)


def _temporary() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="kvlab-fast-"))
    except OSError as error:
        raise Unsupported(f"fast path: there is no folder to compile into ({error})") from None

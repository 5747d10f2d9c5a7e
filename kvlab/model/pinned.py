"""Files that must be exactly these bytes: a name, a size and a sha256, and how to check them.

A check reads the whole file once and then leaves a small stamp, so that later checks are instant.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kvlab.errors import NotVerified

STAMP = "verified.json"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class PinnedFile:
    """A file known in advance: `size` in bytes, `sha256` in hexadecimal.

    >>> PinnedFile("a.bin", size=0, sha256=hashlib.sha256(b"").hexdigest()).sha256[:8]
    'e3b0c442'
    """

    name: str
    size: int
    sha256: str


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal, reading one MiB at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: Path, pinned: PinnedFile) -> None:
    """Read the whole file and raise `NotVerified` unless it is the pinned one."""
    if not path.is_file():
        raise NotVerified(f"{path}: no such file; expected {pinned.name}")
    size = path.stat().st_size
    if size != pinned.size:
        raise NotVerified(f"{path}: {size:,} bytes, but {pinned.name} has {pinned.size:,}")
    compare_hash(str(path), sha256_of(path), pinned)


def compare_hash(where: str, digest: str, pinned: PinnedFile) -> None:
    """Raise `NotVerified` unless `digest` is the pinned sha256."""
    if digest != pinned.sha256:
        raise NotVerified(
            f"{where}: sha256 is {digest[:12]}..., but {pinned.name} must have "
            f"{pinned.sha256[:12]}...; the file is damaged or another one"
        )


def write_verified(source: Iterable[bytes], path: Path, pinned: PinnedFile) -> None:
    """Write `source` to `path`, flushed to the disk; raise `NotVerified` on another size or hash.

    Call it on a path in a temporary folder and move the result: a kill then leaves no half file.
    """
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for chunk in source:
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    if size != pinned.size:
        raise NotVerified(f"{path.name}: {size:,} bytes came, but it must have {pinned.size:,}")
    compare_hash(path.name, digest.hexdigest(), pinned)


def read_chunks(file: object) -> Iterable[bytes]:
    """Yield the rest of an open binary file, one MiB at a time."""
    return iter(lambda: file.read(_CHUNK), b"")  # type: ignore[attr-defined]


def is_verified(folder: Path, pins: Iterable[PinnedFile], *, full: bool = False) -> bool:
    """Say whether `folder` holds every pinned file; `full` hashes again whatever the stamp says.

    A file whose size and time of change are those of the stamp is not read again.
    """
    pins = list(pins)
    stamp = _read_stamp(folder)
    try:
        now = {pinned.name: _stamp_of(folder / pinned.name, pinned) for pinned in pins}
        for pinned in pins:
            if full or stamp.get(pinned.name) != now[pinned.name]:
                check_file(folder / pinned.name, pinned)
    except (NotVerified, OSError):
        return False
    if stamp != now:
        write_stamp(folder, pins)
    return True


def write_stamp(folder: Path, pins: Iterable[PinnedFile]) -> None:
    """Note that the pinned files in `folder` were checked; a folder we may not write is left."""
    stamp = {pinned.name: _stamp_of(folder / pinned.name, pinned) for pinned in pins}
    part = folder / f".{STAMP}.{os.getpid()}"
    try:
        part.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
        part.replace(folder / STAMP)
    except OSError:
        return


def _stamp_of(path: Path, pinned: PinnedFile) -> list[object]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, pinned.sha256]


def _read_stamp(folder: Path) -> dict[str, object]:
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}

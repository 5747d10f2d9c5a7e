"""Tensors in one file that is written whole or not at all, and read only when its hash is right.

The file is a safetensors file; among its metadata is the sha256 of the file itself, taken with
zeros in the place of the hash. One tensor is in memory at a time.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from kvlab.errors import KvlabError, NotVerified

NO_HASH = "0" * 64
_CODES = {
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.float64: "F64",
    torch.int64: "I64",
}
_CHUNK = 1 << 20
_MOST_HEADER = 1 << 24


def write_tensors(
    path: Path,
    shapes: Mapping[str, tuple[torch.dtype, tuple[int, ...]]],
    tensor: Callable[[str], Tensor],
    metadata: Mapping[str, str],
) -> str:
    """Write the tensors named in `shapes`, each asked for when its turn comes; return the sha256.

    Raises `KvlabError` naming the path when it can't be written; what stood there is then still
    there.
    """
    header = _header(shapes, {**metadata, "sha256": NO_HASH})
    digest = hashlib.sha256(header)
    with _whole_or_not_at_all(path) as file:
        file.write(header)
        for name in shapes:
            numbers = tensor(name).detach().to("cpu").contiguous().flatten()
            raw = memoryview(numbers.view(torch.uint8).numpy())
            file.write(raw)
            digest.update(raw)
        file.seek(header.index(NO_HASH.encode()))
        file.write(digest.hexdigest().encode())
    return digest.hexdigest()


def _header(
    shapes: Mapping[str, tuple[torch.dtype, tuple[int, ...]]], metadata: Mapping[str, str]
) -> bytes:
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    start = 0
    for name, (dtype, shape) in shapes.items():
        end = start + torch.Size(shape).numel() * dtype.itemsize
        header[name] = {
            "dtype": _CODES[dtype],
            "shape": list(shape),
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


@contextmanager
def _whole_or_not_at_all(path: Path) -> Iterator[IO[bytes]]:
    """Give a file beside `path` that takes its place at the end; any failure removes it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise KvlabError(
            f"{path}: can't be written ({error.strerror}); nothing new was left there"
        ) from None
    finally:
        with suppress(OSError):  # no such folder: there is nothing to remove
            part.unlink(missing_ok=True)


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a whole and undamaged file; reads all of it once.

    Raises `NotVerified` naming the path for every other file.
    """
    try:
        with path.open("rb") as file:
            header = _read_header(path, file)
            metadata = _parse(path, header)
            stated = metadata.get("sha256", "").encode()
            if len(stated) != 64 or header.count(stated) != 1:
                raise NotVerified(f"{path}: states no sha256; it was not written by kvlab")
            digest = hashlib.sha256(header.replace(stated, NO_HASH.encode()))
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise NotVerified(f"{path}: can't be read ({error.strerror})") from None
    if digest.hexdigest().encode() != stated:
        raise NotVerified(f"{path}: the content does not have the sha256 that the file states")
    return metadata


def forget_pages(path: Path) -> bool:
    """Ask the system to drop a file from memory, so that reading it comes from the disk.

    Returns whether the system can be asked.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def _read_header(path: Path, file: IO[bytes]) -> bytes:
    length = file.read(8)
    size = int.from_bytes(length, "little")
    text = file.read(size) if size <= _MOST_HEADER else b""
    if len(length) < 8 or len(text) != size:
        raise NotVerified(f"{path}: is cut short, or is no safetensors file")
    return length + text


def _parse(path: Path, header: bytes) -> dict[str, str]:
    try:
        metadata = json.loads(header[8:])["__metadata__"]
        return {str(name): str(value) for name, value in metadata.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NotVerified(f"{path}: is no safetensors file with metadata") from None

"""A file without a name as the place where a layer's tokens rest, one row a token.

The system removes such a file when it is closed, also when the program fails or is killed. Nothing
half-written can be read later, because nothing can be read later. To keep a cache, see
`kvlab.model.resume`.
"""

import errno
import os
import tempfile
import threading
from pathlib import Path

import torch
from torch import Tensor

from kvlab.cache.token_rows import TokenRows
from kvlab.errors import CacheFull, InvalidArgument, KvlabError, Unsupported

NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


def check_folder(folder: str | os.PathLike[str] | None) -> Path:
    """Return the folder for the files, the system's temporary one for None.

    Raises `InvalidArgument` unless a file can be made in it.

    >>> check_folder("no/such/folder")
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: folder='no/such/folder': must be a folder in which files can be \
made (No such file or directory)
    """
    path = Path(tempfile.gettempdir() if folder is None else folder)
    try:
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        rule = f"must be a folder in which files can be made ({error.strerror})"
        raise InvalidArgument("folder", str(path), rule) from None
    return path


class DiskStore:
    """Rows in one file of `folder`; whatever stands in it behind the rows asked for is ignored.

    Without `page_cache` the system is asked to forget what was written or read, so that reading
    comes from the disk again: slower, for measuring.

    >>> layout = TokenRows(batch=1, num_kv_heads=1, k_dim=2, v_dim=2, dtype=torch.float32)
    >>> store = DiskStore(layout, check_folder(None))
    >>> store.write(0, torch.ones(3, 4))
    >>> store.read(2, torch.device("cpu")).shape, store.reserved_nbytes
    (torch.Size([2, 4]), 48)
    """

    reads_in_place = False

    def __init__(self, layout: TokenRows, folder: Path, *, page_cache: bool = True) -> None:
        if not page_cache and not hasattr(os, "posix_fadvise"):
            raise Unsupported("page_cache=False: this system can't be asked to forget a file")
        self.layout, self.folder, self.page_cache = layout, folder, page_cache
        check_folder(folder)
        self.file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115, lives with self
        self.lock = threading.Lock()  # a file has one place at which it reads and writes

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of the file, whether or not they are still needed."""
        return os.fstat(self.file.fileno()).st_size

    def write(self, start: int, rows: Tensor) -> None:
        """Put rows, (q_len, elements), behind the first `start` ones; `CacheFull` on a full disk.

        What a failed write left behind the first `start` rows is overwritten by the next.
        """
        left = _bytes_of(rows.to("cpu").contiguous())
        try:
            with self.lock:
                self.file.seek(start * self.layout.nbytes)
                while left:
                    left = left[self.file.write(left) :]
                if not self.page_cache and len(rows) > 1:  # one token's page is not worth a wait
                    os.fsync(self.file.fileno())  # only what is on the disk can be forgotten
                    self._forget()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise KvlabError(f"{self.folder}: can't write ({error.strerror})") from None
            raise CacheFull(
                f"{self.folder}: no room for {rows.nbytes:,} bytes of the cache"
                f" ({error.strerror}); free some or give another folder"
            ) from None

    def read(self, n: int, device: torch.device) -> Tensor:
        """Return the first `n` rows on `device`; a GPU's stream may still be bringing them."""
        size, pinned = (n, self.layout.elements), device.type == "cuda"
        with torch.inference_mode(False):
            rows = torch.empty(size, dtype=self.layout.dtype, device="cpu", pin_memory=pinned)
        left = _bytes_of(rows)
        with self.lock:
            self.file.seek(0)
            while left:
                count = self.file.readinto(left)
                if not count:
                    raise KvlabError(f"{self.folder}: the file ends before {n} tokens")
                left = left[count:]
            if not self.page_cache:
                self._forget()
        return rows.to(device, non_blocking=True)

    def copy(self, n: int) -> "DiskStore":
        """Return a store with a file of its own that holds the first `n` rows."""
        twin = DiskStore(self.layout, self.folder, page_cache=self.page_cache)
        twin.write(0, self.read(n, torch.device("cpu")))
        return twin

    def _forget(self) -> None:
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _bytes_of(rows: Tensor) -> memoryview:
    return memoryview(rows.flatten().view(torch.uint8).numpy())

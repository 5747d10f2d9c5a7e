"""The nameless files of the disk tier: what is read back, what a failure leaves, what remains."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from kvlab.cache.disk_store import DiskStore, check_folder
from kvlab.cache.host_store import HostStore
from kvlab.cache.token_rows import TokenRows
from kvlab.errors import CacheFull, InvalidArgument, KvlabError, Unsupported

CPU = torch.device("cpu")
LAYOUT = TokenRows(batch=2, num_kv_heads=2, k_dim=3, v_dim=5, dtype=torch.float32)
posix = pytest.mark.skipif(os.name != "posix", reason="asks the system of Linux and macOS")
STORES = pytest.mark.parametrize("tier", ["host", "disk"])


def new_store(tier: str, folder: Path, layout: TokenRows = LAYOUT) -> HostStore | DiskStore:
    return HostStore(layout, CPU) if tier == "host" else DiskStore(layout, folder)


def some_rows(n: int, layout: TokenRows = LAYOUT) -> torch.Tensor:
    return torch.randn(n, layout.elements).to(layout.dtype)


@contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes, as on a disk that is full."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@STORES
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rows_come_back_bit_for_bit_in_every_dtype(
    tier: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    layout = TokenRows(batch=1, num_kv_heads=2, k_dim=4, v_dim=4, dtype=dtype)
    store, rows = new_store(tier, tmp_path, layout), some_rows(9, layout)
    for start, end in [(0, 4), (4, 5), (5, 9)]:
        store.write(start, rows[start:end])
    for n in (0, 3, 9):
        assert torch.equal(store.read(n, CPU), rows[:n])


@STORES
def test_writing_behind_fewer_rows_replaces_what_followed(tier: str, tmp_path: Path) -> None:
    store, first, second = new_store(tier, tmp_path), some_rows(6), some_rows(2)
    store.write(0, first)
    store.write(3, second)
    assert torch.equal(store.read(5, CPU), torch.cat([first[:3], second]))


@STORES
def test_a_copy_goes_its_own_way(tier: str, tmp_path: Path) -> None:
    store, rows = new_store(tier, tmp_path), some_rows(4)
    store.write(0, rows)
    twin = store.copy(3)
    twin.write(0, some_rows(3))
    assert torch.equal(store.read(4, CPU), rows)


@STORES
def test_packed_and_unpacked_tokens_are_the_same_tokens(tier: str, tmp_path: Path) -> None:
    keys, values = torch.randn(2, 2, 7, 3), torch.randn(2, 2, 7, 5)
    assert TokenRows.of(keys, values) == LAYOUT
    store = new_store(tier, tmp_path)
    store.write(0, LAYOUT.pack(keys, values))
    found = LAYOUT.unpack(store.read(7, CPU), room=2)
    assert [tuple(states.shape) for states in found] == [(2, 2, 9, 3), (2, 2, 9, 5)]
    assert torch.equal(found[0][:, :, :7], keys) and torch.equal(found[1][:, :, :7], values)
    assert LAYOUT.nbytes * 7 == keys.nbytes + values.nbytes


def test_the_files_have_no_name(tmp_path: Path) -> None:
    store = DiskStore(LAYOUT, tmp_path)
    store.write(0, some_rows(5))
    assert store.reserved_nbytes == 5 * LAYOUT.nbytes
    assert os.name != "posix" or list(tmp_path.iterdir()) == []
    del store
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_killed_program_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    script = """
import os, signal, sys, torch
from kvlab.cache.offloaded import OffloadedLayer
layer = OffloadedLayer(tier="disk", folder=sys.argv[1])
tokens = torch.ones(1, 2, 50, 8)
layer.update(tokens, tokens)
print(layer.reserved_nbytes, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (killed.stdout.strip(), killed.returncode) == (str(50 * 2 * 2 * 8 * 4), -9)
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_full_disk_names_the_folder_and_what_was_there_stays(tmp_path: Path) -> None:
    store, rows = DiskStore(LAYOUT, tmp_path), some_rows(4)
    store.write(0, rows)
    with largest_file(5 * LAYOUT.nbytes + 7), pytest.raises(CacheFull) as full:
        store.write(4, some_rows(3))
    assert str(full.value).startswith(f"{tmp_path}: no room for {3 * LAYOUT.nbytes} bytes of the")
    assert "give another folder" in str(full.value) and "\n" not in str(full.value)
    assert store.reserved_nbytes > 4 * LAYOUT.nbytes  # part of it was written, and is not read
    assert torch.equal(store.read(4, CPU), rows)
    again = some_rows(3)
    store.write(4, again)
    assert torch.equal(store.read(7, CPU), torch.cat([rows, again]))


def test_a_folder_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_text("not a folder", encoding="utf-8")
    for folder in (tmp_path / "missing", file):
        with pytest.raises(InvalidArgument, match=r"folder=.*must be a folder in which files can"):
            check_folder(folder)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a folder that nobody may write to")
def test_a_folder_that_is_not_writable_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="folder='/proc/self': must be a folder in which"):
        check_folder("/proc/self")


def test_a_file_that_was_cut_short_is_never_read_as_whole(tmp_path: Path) -> None:
    store = DiskStore(LAYOUT, tmp_path)
    store.write(0, some_rows(4))
    store.file.truncate(3 * LAYOUT.nbytes + 1)
    assert store.read(3, CPU).shape == (3, LAYOUT.elements)
    with pytest.raises(KvlabError, match="the file ends before 4 tokens"):
        store.read(4, CPU)


def test_keys_and_values_of_two_dtypes_are_refused() -> None:
    keys = torch.zeros(1, 1, 2, 4)
    with pytest.raises(InvalidArgument, match=r"dtype of value_states=torch\.float16: must be"):
        TokenRows.of(keys, keys.half())


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="only Linux tells what it has in memory")
def test_without_page_cache_the_rows_come_from_the_disk_and_are_the_same() -> None:
    layout = TokenRows(batch=1, num_kv_heads=4, k_dim=64, v_dim=64, dtype=torch.float32)
    rows, in_memory = some_rows(512, layout), {}
    for page_cache in (True, False):
        store = DiskStore(layout, check_folder(None), page_cache=page_cache)
        store.write(0, rows)
        in_memory[page_cache] = readable_at_once(store)
        assert torch.equal(store.read(512, CPU), rows)
    if in_memory[True] is None or in_memory == {True: True, False: True}:
        pytest.skip("this file system keeps its files in memory, or does not say")
    assert in_memory == {True: True, False: False}


def readable_at_once(store: DiskStore) -> bool | None:
    """Return whether the first page can be read without waiting for the disk; None: not told."""
    try:
        return os.preadv(store.file.fileno(), [bytearray(4096)], 0, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except OSError:
        return None


def test_a_system_that_can_forget_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    with pytest.raises(Unsupported, match="page_cache=False: this system can't be asked"):
        DiskStore(LAYOUT, tmp_path, page_cache=False)

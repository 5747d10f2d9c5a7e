import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvlab._paths import own_dir
from kvlab.course.progress import KEEP, VERSION, Progress, default_path
from kvlab.errors import KvlabError


@pytest.fixture
def progress(tmp_path):
    return Progress(tmp_path / "learner" / "progress.json")


def test_answers_are_kept_for_the_next_session(progress):
    progress.record("02-a", "wrong", right=False, seed=1)
    progress.record("02-a", "right", right=True, seed=2)
    progress.record("02-b", "wrong", right=False)
    later = Progress(progress.path)
    assert [answer["right"] for answer in later.answers()["02-a"]] == [False, True]
    assert later.score(["02-a", "02-b", "02-c"]) == (1, 2)


def test_only_the_last_answers_are_kept(progress):
    for _ in range(KEEP + 3):
        progress.record("x", "right", right=True)
    assert len(progress.answers()["x"]) == KEEP


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"version": 1, "answers": []}',
        b'{"version": 1, "answers": {"a": [3]}}',
        b'{"version": 99, "answers": {}}',
        b"[" * 100_000,
    ],
    ids=range(9),
)
def test_a_file_that_cannot_be_used_is_set_aside_and_the_course_goes_on(progress, content):
    progress.path.parent.mkdir()
    for _ in range(2):
        progress.path.write_bytes(content)
        assert progress.answers() == {}
        assert "kept as" in progress.note
    progress.record("a", "right", right=True)
    assert progress.score(["a"]) == (1, 1)
    copies = [path for path in progress.path.parent.iterdir() if path != progress.path]
    assert [copy.read_bytes() for copy in copies] == [content, content]


def test_delete_removes_everything_in_one_call(progress):
    assert not progress.delete()
    progress.record("a", "right", right=True)
    progress.path.write_text("{", encoding="utf-8")
    progress.answers()
    progress.record("a", "right", right=True)
    assert progress.delete()
    assert list(progress.path.parent.iterdir()) == []


def test_a_place_that_cannot_be_written_costs_a_note_and_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x", encoding="utf-8")
    progress = Progress(blocked / "progress.json")
    assert progress.record("a", "right", right=True) is False
    assert "not saved" in progress.note
    blocked.unlink()
    assert progress.record("a", "right", right=True) is True
    assert progress.note == "" and progress.score(["a"]) == (1, 1)


def test_a_full_disk_keeps_the_old_file_whole(progress, monkeypatch):
    assert progress.record("a", "right", right=True)
    before = progress.path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert not progress.record("b", "right", right=True)
    assert progress.note == "Your progress was not saved: No space left on device."
    assert progress.path.read_bytes() == before
    assert list(progress.path.parent.iterdir()) == [progress.path]


def test_what_cannot_be_deleted_is_named(progress, monkeypatch):
    progress.record("a", "right", right=True)

    def refuse(*_, **__):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(KvlabError, match=r"not deleted: progress\.json in .*not permitted"):
        progress.delete()


def test_a_shared_folder_that_one_may_only_read_is_left_for_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))
    monkeypatch.delenv("KVLAB_PROGRESS", raising=False)
    assert default_path() == tmp_path / "progress.json"
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert default_path() == own_dir() / "progress.json" != tmp_path / "progress.json"


def test_the_learners_folder_is_used_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))
    monkeypatch.delenv("KVLAB_PROGRESS", raising=False)
    Progress().record("a", "right", right=True)
    document = json.loads((tmp_path / "progress.json").read_text(encoding="utf-8"))
    assert document["version"] == VERSION


def test_killing_a_writer_leaves_a_readable_file(progress):
    code = (
        "import sys; from pathlib import Path; from kvlab.course.progress import Progress\n"
        "p = Progress(Path(sys.argv[1]))\n"
        "i = 0\n"
        "while True:\n"
        "    p.record(f'q{i % 40}', 'right', right=True); i += 1; print(i, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(progress.path)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(5):
        done = int(writer.stdout.readline())
    time.sleep(0.05)
    os.kill(writer.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    rest = writer.communicate()[0].split()
    done = int(rest[-1]) if rest else done
    kept = sum(len(answers) for answers in progress.answers().values())
    assert kept in (done, done + 1)
    assert progress.note == ""


def test_another_file_can_be_named_so_that_a_build_shows_nobodys_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KVLAB_PROGRESS", str(tmp_path / "other.json"))
    Progress().record("a", "right", right=True)
    assert [path.name for path in tmp_path.iterdir()] == ["other.json"]


def test_a_device_or_a_folder_is_never_renamed_and_said_so(tmp_path: Path) -> None:
    folder = tmp_path / "progress.json"
    folder.mkdir()
    for path in (folder, Path("/dev/null")):
        if not path.exists():
            continue
        progress = Progress(path)
        progress.record("02-doubling", "right", right=True)
        assert progress.answers() == {} and "no ordinary file" in progress.note
        assert path.exists() and not path.is_file()

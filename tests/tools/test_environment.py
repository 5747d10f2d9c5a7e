"""Preparing an environment: once, again after an interrupt, and in one line when it fails."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import environment
import pytest
import setup_env
from environment import ROOT, SetupFailed, ensure, python_of, stamp_of

REQUIREMENTS = "requirements.txt"


class Calls:
    """Stands in for running commands: keeps them, makes the environment, fails on request."""

    def __init__(self, fail_at: str = "") -> None:
        self.commands: list[str] = []
        self.fail_at = fail_at

    def __call__(self, command: Sequence[object], when_it_fails: str) -> None:
        text = " ".join(str(part) for part in command)
        self.commands.append(text)
        if self.fail_at and self.fail_at in text:
            raise SetupFailed(when_it_fails)
        if " venv " in f" {text} ":
            python = python_of(Path(str(command[-1])))
            python.parent.mkdir(parents=True)
            python.touch()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    fake = Calls()
    monkeypatch.setattr(environment, "call", fake)
    monkeypatch.setattr(environment, "runs", lambda command: True)
    return fake


def test_a_second_call_installs_nothing(calls: Calls, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with spaces"
    ensure(folder, REQUIREMENTS, with_kvlab=True)
    assert len(calls.commands) == 3
    assert str(ROOT / REQUIREMENTS) in calls.commands[1] and "--no-deps -e" in calls.commands[2]
    assert ensure(folder, REQUIREMENTS, with_kvlab=True) == python_of(folder)
    assert len(calls.commands) == 3


@pytest.mark.parametrize("step", [" venv ", "-r ", "--no-deps"])
def test_an_installation_cut_short_is_repeated(calls: Calls, tmp_path: Path, step: str) -> None:
    calls.fail_at = step
    with pytest.raises(SetupFailed):
        ensure(tmp_path / "env", REQUIREMENTS, with_kvlab=True)
    calls.fail_at, calls.commands = "", []
    ensure(tmp_path / "env", REQUIREMENTS, with_kvlab=True)
    assert any("-r " in command for command in calls.commands)


def test_changed_requirements_are_installed(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure(tmp_path / "env", REQUIREMENTS)
    monkeypatch.setattr(environment, "stamp_of", lambda *names: "another")
    calls.commands = []
    ensure(tmp_path / "env", REQUIREMENTS)
    assert len(calls.commands) == 1


def test_the_stamp_depends_on_requirements_project_python_and_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    both = (REQUIREMENTS, "pyproject.toml")
    for name in both:
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    seen = [stamp_of(*both)]
    for name in both:
        (tmp_path / name).write_text(f"{name} changed", encoding="utf-8")
        seen.append(stamp_of(*both))
    monkeypatch.setattr(sys, "version", "4.0")
    seen.append(stamp_of(*both))
    assert len(set(seen)) == 4


def test_an_old_python_is_told_what_to_do(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SetupFailed, match=r"needs Python 3\.11 or newer and this is 3\.9"):
        ensure(tmp_path / "env", REQUIREMENTS)


def test_the_lab_asks_no_questions_about_news(calls: Calls, tmp_path: Path) -> None:
    ensure(tmp_path, REQUIREMENTS)
    (path,) = tmp_path.rglob("overrides.json")
    assert "fetchNews" in str(json.loads(path.read_text(encoding="utf-8")))


def test_a_failed_setup_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> Path:
        raise SetupFailed("no network")

    monkeypatch.setattr(setup_env, "ensure", fail)
    assert setup_env.main(["setup"]) == 1
    assert capsys.readouterr().err == "setup: no network\n"


def test_without_the_model_the_course_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_env, "ensure", lambda *a, **k: Path(sys.executable))
    monkeypatch.setattr(setup_env.subprocess, "call", lambda *a, **k: 2)
    assert setup_env.main(["setup"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_make_and_the_plain_command_know_the_same_words() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in setup_env.COMMANDS:
        assert f"\n{word}:" in makefile

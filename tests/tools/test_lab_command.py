"""The lab's command line fits the machine: containers, laptops, and what a learner adds."""

from pathlib import Path

import lab_command
import pytest
from lab_command import has_browser


def command(monkeypatch: pytest.MonkeyPatch, *, root: bool, **environ: str) -> list[str]:
    monkeypatch.setattr(lab_command, "is_root", lambda: root)
    monkeypatch.setattr(lab_command.webbrowser, "get", lambda: None)
    monkeypatch.setattr(lab_command.sys, "platform", "linux")
    return lab_command.lab_command(Path("python"), environ)


def test_a_container_gets_a_lab_without_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    line = command(monkeypatch, root=True)
    assert "--allow-root" in line and "--no-browser" in line


def test_a_laptop_gets_a_window_and_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    line = command(monkeypatch, root=False, DISPLAY=":0")
    assert "--allow-root" not in line and "--no-browser" not in line


def test_the_lab_listens_on_loopback_keeps_its_token_and_opens_chapter_00(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = command(monkeypatch, root=True)
    assert "--ServerApp.ip=127.0.0.1" in line
    assert "--LabApp.default_url=/lab/tree/chapters/00_start_here.ipynb" in line
    assert not [part for part in line if "token" in part or "password" in part]


def test_a_learners_own_options_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    line = command(monkeypatch, root=True, KVLAB_LAB_ARGS="--port=9999 --x='a b'")
    assert line[-2:] == ["--port=9999", "--x=a b"]


def test_a_machine_without_any_browser_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise lab_command.webbrowser.Error

    monkeypatch.setattr(lab_command.webbrowser, "get", none)
    assert not has_browser({"DISPLAY": ":0"}, "linux")
    assert not has_browser({}, "darwin")

"""`kvlab bench --save` and `--plot`: what is wrong is told before anything is measured."""

import json
from pathlib import Path

import pytest

from kvlab.bench import run
from kvlab.bench.lines import Line
from kvlab.cli import INVALID
from kvlab.cli import run as cli


def test_a_run_without_bars_is_kept_and_the_plot_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "measure", lambda *_: iter([Line("start: x", "ms", ours=1.0)]))
    plot, kept = tmp_path / "x.svg", tmp_path / "ok.json"
    assert cli(["bench", "--only", "start", "--plot", str(plot), "--save", str(kept)]) == 0
    assert "nothing to draw" in capsys.readouterr().err and not plot.exists()
    assert len(json.loads(kept.read_text(encoding="utf-8"))["runs"]) == 1


def test_a_plot_that_can_not_be_written_is_one_line_after_the_run_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = Line("start: x", "ms", ours=1.0, limit=0.5)
    monkeypatch.setattr(run, "measure", lambda *_: iter([line]))
    kept = tmp_path / "ok.json"
    words = ["bench", "--only", "start", "--plot", str(tmp_path), "--save", str(kept)]
    assert cli(words) == INVALID
    assert "plot=" in capsys.readouterr().err.splitlines()[-1] and kept.is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["--only", ""],
        ["--only", "start", "--save", ""],
        ["--only", "start", "--save", "/dev/full"],
        ["--only", "start", "--save", "none/x.json"],
        ["--only", "start", "--peer", "nano-vllm=none"],
    ],
)
def test_nothing_is_measured_where_a_word_is_wrong(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "measure", lambda *_: pytest.fail("it was measured"))
    assert cli(["bench", *words]) == INVALID
    assert capsys.readouterr().err.count("\n") == 1

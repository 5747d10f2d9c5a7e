"""`kvlab bench` from a terminal: JSON, refusals, an interrupt, a picture and a kept run."""

import json
from pathlib import Path

import pytest

from kvlab.bench import registry, run
from kvlab.bench.lines import FIELDS, Line
from kvlab.cli import INTERRUPTED, INVALID
from kvlab.cli import run as cli


@pytest.fixture
def one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(names, setting, **options):
        yield Line("start: x", "ms", ours=10.0, peer=30.0, peer_name="peer", limit=8.0)

    monkeypatch.setattr(run, "measure", measured)


def test_json_is_a_list_of_lines_and_nothing_else(one_row, capsys) -> None:
    assert cli(["bench", "--only", "start", "--json"]) == 0
    out, err = capsys.readouterr()
    (line,) = json.loads(out)
    assert tuple(line) == FIELDS and line["work"].startswith("start")
    assert "cores" in err and "threads" in err


def test_several_names_may_follow_only(capsys, monkeypatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(run, "measure", lambda names, setting: iter(seen.append(names) or ()))
    assert cli(["bench", "--only", "start", "decode"]) == 0
    assert cli(["bench", "--only", "start,decode"]) == 0
    assert seen == [["decode", "start"]] * 2


def test_an_unknown_row_is_one_line_that_names_the_rows(capsys) -> None:
    assert cli(["bench", "--only", "speed"]) == INVALID
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and all(name in said for name in registry.ROWS)


def test_an_interrupt_prints_what_was_measured(monkeypatch, capsys) -> None:
    def stopped(names, setting):
        yield Line("start: x", "ms", ours=10.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "measure", stopped)
    assert cli(["bench", "--only", "start", "--json"]) == INTERRUPTED
    assert [line["ours"] for line in json.loads(capsys.readouterr().out)] == [10.0]


def test_picture_and_run_are_written(one_row, tmp_path: Path, capsys) -> None:
    plot, kept = tmp_path / "bench.svg", tmp_path / "runs.json"
    assert cli(["bench", "--only", "start", "--plot", str(plot), "--save", str(kept)]) == 0
    assert plot.read_text(encoding="utf-8").startswith("<svg")
    (saved,) = json.loads(kept.read_text(encoding="utf-8"))["runs"]
    assert saved["command"] == "kvlab bench --only start" and saved["machine"]["cores"] >= 1

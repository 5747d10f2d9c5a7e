"""A kept run, its merging row by row, and README's section made from it."""

import json
from pathlib import Path

import pytest
import readme_bench

from kvlab.bench.lines import Line
from kvlab.bench.reference import (
    KeptRun,
    check_place,
    lines_in_order,
    load_runs,
    reference_path,
    save_run,
)
from kvlab.errors import InvalidArgument

MACHINE = {
    "processor": "CPU", "cores": 2, "threads": 2, "memory_gib": 8, "gpu": None, "python": "3.11",
    "packages": {"torch": "2.13.0", "transformers": None}, "kvlab": "0.1.0", "date": "2026-11-30",
}  # fmt: skip


def run(*lines: Line) -> KeptRun:
    return KeptRun(MACHINE, "kvlab bench", lines)


def test_a_later_run_replaces_its_rows_alone(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    old = Line("start: x", "ms", ours=1.0)
    save_run(file, run(old, Line("open: y", "s", ours=2.0)))
    save_run(file, run(Line("start: x", "ms", ours=3.0)))
    kept = load_runs(file)
    assert [[line.ours for line in one.lines] for one in kept] == [[2.0], [3.0]]
    assert [line.row for line in lines_in_order(kept)] == ["start", "open"]
    assert list(tmp_path.iterdir()) == [file]


def test_how_a_cost_grows_and_what_it_is_are_kept_side_by_side(tmp_path: Path) -> None:
    file, plain = tmp_path / "runs.json", Line("decode: batch 1", "ms", ours=1.0)
    grows = Line("decode: growth of a decode step with context", "exponent", ours=0.5)
    for line in (plain, grows, plain):
        save_run(file, run(line))
    works = [line.work for kept in load_runs(file) for line in kept.lines]
    assert works == [grows.work, plain.work]


@pytest.mark.parametrize(
    "text",
    [
        "[]", "nonsense", '{"a": 1}', '{"runs": [{}]}', '{"runs": 3}', '{"runs": [5]}',
        '{"runs": [{"machine": "m", "command": "c", "lines": []}]}',
        '{"runs": [{"machine": {}, "command": "c", "lines": [], "mine": 1}]}',
        '{"runs": [{"machine": {}, "command": "c", "lines": [5]}]}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_a_file_that_holds_no_run_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "runs.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match="holds no run"):
        load_runs(file)


def test_readme_shows_misses_with_their_reasons() -> None:
    behind = Line("cache-bits: x", "us", ours=4.0, peer=2.0, peer_name="peer", note="it copies")
    text = readme_bench.section([run(behind, Line("decode: GPU, x", "ms", note="no GPU"))])
    assert "| cache-bits: x | 0.5x | | 4 us | 2 peer | missed: not behind |" in text
    assert "- missed: cache-bits: x. it copies" in text
    assert "- not measured: decode: GPU, x. no GPU" in text
    assert "CPU, 2 cores, 2 threads" in text and "2026-11-30" in text


def test_readme_is_as_the_kept_run_says() -> None:
    assert readme_bench.main(["--check"]) == 0


def test_an_old_section_is_noticed_and_written(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"a\n{readme_bench.START}\nold\n{readme_bench.END}\nb\n", encoding="utf-8")
    assert readme_bench.main(["--check"], readme) == 1
    assert readme_bench.main([], readme) == 0
    assert readme_bench.main(["--check"], readme) == 0
    assert readme.read_text(encoding="utf-8").endswith("\nb\n")


def test_readme_without_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="markers"):
        readme_bench.wanted("nothing here", [])


def test_the_kept_reference_is_sound_where_there_is_one() -> None:
    for kept in load_runs(reference_path()):
        assert kept.machine["date"] and kept.lines
        assert json.dumps(kept.to_dict())


def test_what_is_not_ours_in_a_file_of_runs_stays(tmp_path: Path) -> None:
    file, beside, link = tmp_path / "runs.json", tmp_path / "runs.json.part", tmp_path / "link"
    mine = {"machine": {}, "command": "by hand", "lines": []}
    file.write_text(json.dumps({"title": "mine", "runs": [mine]}), encoding="utf-8")
    beside.write_text("mine too", encoding="utf-8")
    link.symlink_to(file)
    save_run(link, run(Line("start: x", "ms", ours=1.0)))
    found = json.loads(file.read_text(encoding="utf-8"))
    assert (found["title"], found["runs"][0], len(found["runs"])) == ("mine", mine, 2)
    assert beside.read_text(encoding="utf-8") == "mine too" and link.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3


def test_an_empty_file_is_taken_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    file.touch(mode=0o640)
    mode = file.stat().st_mode
    check_place(file)
    save_run(file, run(Line("start: x", "ms", ours=1.0)))
    assert len(load_runs(file)) == 1 and file.stat().st_mode == mode


@pytest.mark.parametrize("place", ["", "folder", "file/x.json", "none/x.json", "/dev/full", "loop"])
def test_a_place_that_takes_no_run_is_named_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_text("x", encoding="utf-8")
    Path("loop").symlink_to("loop")
    with pytest.raises(InvalidArgument, match="file="):
        check_place(Path(place))
    with pytest.raises(InvalidArgument, match="file="):
        save_run(Path(place), run(Line("start: x", "ms", ours=1.0)))

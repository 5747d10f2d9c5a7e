"""Which rows there are, which a plain run takes, and what is refused."""

from pathlib import Path

import pytest

from kvlab.bench.allocator_nano import load_nano
from kvlab.bench.growth import GROWTH, Curve, grown
from kvlab.bench.lines import Line
from kvlab.bench.registry import ROWS, chosen_rows, named_rows, parse_peers
from kvlab.bench.run import collected, measure
from kvlab.bench.setting import Setting
from kvlab.errors import InvalidArgument, Unsupported

NAMES = (
    "decode", "decode-lowbit", "prefill", "batch", "recompute", "start", "slider", "open",
    "chapters", "allocator", "simulator", "cache-bits", "train-tiny", "fresh",
)  # fmt: skip


def test_the_rows_are_these_and_each_leads_to_a_function() -> None:
    assert tuple(ROWS) == NAMES
    assert all(callable(row.function()) for row in ROWS.values())


def test_long_rows_are_measured_only_when_named() -> None:
    long = {"open", "chapters", "simulator", "train-tiny", "fresh"}
    assert set(chosen_rows([])) == set(NAMES) - long
    assert chosen_rows(["fresh", "start"]) == ["start", "fresh"]


def test_an_unknown_row_names_the_rows() -> None:
    with pytest.raises(InvalidArgument, match="decode, decode-lowbit") as error:
        chosen_rows(["decod"])
    assert all(name in str(error.value) for name in NAMES)


@pytest.mark.parametrize("text", ["nano-vllm", "nano-vllm=", "other=/x", "=/x"])
def test_a_peer_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="nano-vllm=FOLDER"):
        parse_peers([text])


def test_a_folder_without_a_copy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"block_manager\.py"):
        load_nano(tmp_path)


def test_a_row_that_fails_is_a_line_that_says_why_and_the_next_one_runs() -> None:
    def broken(setting: Setting):
        yield Line("decode: first", "ms", ours=1.0)
        raise Unsupported("no such thing here")

    def fine(setting: Setting):
        yield Line("start: x", "ms", ours=2.0)

    functions = {"decode": broken, "start": fine}
    lines = list(measure(["decode", "start"], Setting(), functions=functions))
    assert [line.work for line in lines] == ["decode: first", "decode: not finished", "start: x"]
    assert (lines[1].ours, lines[1].note) == (None, "no such thing here")


def test_an_interrupt_keeps_what_was_measured() -> None:
    def stopped(setting: Setting):
        yield Line("decode: first", "ms", ours=1.0)
        raise KeyboardInterrupt

    shown: list[Line] = []
    lines = measure(["decode", "start"], Setting(), functions={"decode": stopped})
    found, cut = collected(lines, shown.append)
    assert cut and [line.work for line in found] == ["decode: first"] and shown == found


def test_growth_is_refused_where_no_curve_is_kept() -> None:
    with pytest.raises(InvalidArgument, match=", ".join(GROWTH)):
        list(grown(["fresh"], Setting()))


def test_a_curve_states_its_exponent_and_its_points() -> None:
    line = Curve("decode", "a step", "context", (1, 10, 100), (9.0, 1.0, 10.0), ends=2).line()
    assert (round(line.ours, 6), line.unit) == (1.0, "exponent")
    assert "100: 10,000" in line.note and "last 2" in line.note


def test_the_help_of_the_command_names_every_row() -> None:
    from kvlab.cli_bench import NAMES

    assert f"One of {', '.join(ROWS)}." == NAMES


@pytest.mark.parametrize("text", ["", ",", ",,"])
def test_no_name_where_one_should_be_names_the_rows(text: str) -> None:
    with pytest.raises(InvalidArgument, match="must be one of decode, decode-lowbit"):
        named_rows([text])


def test_a_peers_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="must name a folder that is there"):
        parse_peers([f"nano-vllm={tmp_path / 'none'}"])

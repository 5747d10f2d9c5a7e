"""`kvlab simulate`: its JSON, its tables, its errors, and what it leaves unloaded."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvlab import cli

BASE = ["simulate", "--model", "llama-3.1-8b", "--gpu", "H100", "--gpus", "1", "--tp", "1"]
LOAD = ["--requests", "300", "--rate", "50", "--prompt-tokens", "150", "--output-tokens", "50"]
KEYS = {
    "requests_finished", "requests_rejected", "tokens_generated", "makespan_seconds",
    "wall_seconds", "peak_block_use", "preemptions", "prefix_hit_tokens", "ttft_seconds",
    "tpot_seconds", "sustained_batch",
}  # fmt: skip


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run the command with --json and return what it prints."""
    assert cli.run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_json_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, *BASE, *LOAD, "--seed", "1")
    assert set(found) >= KEYS
    assert (found["requests_finished"], found["requests_rejected"]) == (300, 0)
    assert found["tokens_generated"] == 300 * 50
    assert found["num_blocks"] == 29_043 and "29,043 blocks" in found["pool"]
    assert 0 < found["peak_block_use"] < 0.05
    for name in ("ttft_seconds", "tpot_seconds"):
        times = found[name]
        assert 0 < times["p50"] <= times["p95"] <= times["p99"]
    assert 0.004 < found["tpot_seconds"]["p50"] < 0.006  # 16 GB of weights at 3.35 TB/s


def test_equal_seeds_give_equal_runs(capsys: pytest.CaptureFixture[str]) -> None:
    load = ["--requests", "60", "--rate", "20", "--prompt-tokens", "lognormal:300:1"]
    runs = [
        report(capsys, *BASE, *load, "--output-tokens", "uniform:5:90", "--seed", seed)
        for seed in ("4", "4", "5")
    ]
    for run in runs:
        del run["wall_seconds"], run["workload"]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("way", ["recompute", "swap"])
def test_pressure_preempts_and_everybody_still_finishes(
    way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Just enough memory beside the weights for about 300 blocks.
    load = ["--requests", "40", "--rate", "inf", "--prompt-tokens", "200", "--output-tokens", "400"]
    tight = ["--utilization", "0.195", "--preemption", way]
    found = report(capsys, *BASE, *load, *tight)
    assert 200 < found["num_blocks"] < 400
    assert found["requests_finished"] == 40 and found["preemptions"] > 0
    assert found["peak_block_use"] == 1.0
    assert (found["recomputed_tokens"] == 0) == (way == "swap")
    reserved = report(capsys, *BASE, *load, *tight, "--reserve-output")
    assert reserved["preemptions"] == 0 and reserved["requests_finished"] == 40


def test_a_shared_prefix_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, *BASE, *LOAD, "--prefix-share", "0.8")
    assert found["prefix_hit_tokens"] == 299 * 112  # 120 shared tokens are 7 whole blocks


def test_a_trace_brings_lengths_and_arrivals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "day.csv"
    rows = [f"{i * 0.5},{100 + i},{5 + i % 3}" for i in range(20)]
    text = "\n".join(["arrival_seconds,prompt_tokens,output_tokens", *rows, ""])
    trace.write_text(text, encoding="utf-8")
    both = ["--prompt-tokens", str(trace), "--output-tokens", str(trace)]
    found = report(capsys, *BASE, *both)
    assert found["requests_finished"] == 20
    assert found["tokens_generated"] == sum(5 + i % 3 for i in range(20))
    assert 9.5 < found["makespan_seconds"] < 9.6
    assert cli.run([*BASE, *both, "--requests", "21"]) == 2
    assert "requests=21: the trace has 20 arrivals" in capsys.readouterr().err


def test_the_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*BASE, *LOAD]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in ("29,043 blocks of 16 tokens", "requests finished", "to the first token", "p99"):
        assert words in said
    assert "preemptions" not in said  # nothing of the kind happened


def write_trace(path: Path, header: str, *rows: str) -> str:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return str(path)


def test_two_traces_of_different_length_are_not_cut_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = "arrival_seconds,prompt_tokens,output_tokens"
    long = write_trace(tmp_path / "long.csv", header, *(f"{i},100,5" for i in range(3)))
    short = write_trace(tmp_path / "short.csv", header, *(f"{i},100,5" for i in range(2)))
    both = [*BASE, "--prompt-tokens", long, "--output-tokens", short]
    assert cli.run(both) == 2
    said = capsys.readouterr().err
    assert said.startswith("kvlab: requests=None: the traces have 3 prompts and 2 answers")
    assert report(capsys, *both, "--requests", "2")["requests_finished"] == 2


def test_priorities_must_come_from_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = "arrival_seconds,prompt_tokens,output_tokens,priority"
    ranked = write_trace(tmp_path / "ranked.csv", header, "0,100,5,1", "0,100,5,0")
    plain = write_trace(tmp_path / "plain.csv", header, "0,100,5,", "0,100,5,")
    by_priority = [*BASE, "--policy", "priority"]
    for lengths in (["100", "5"], [plain, plain], [ranked, "5"]):
        asked = ["--prompt-tokens", lengths[0], "--output-tokens", lengths[1], "--rate", "1"]
        assert cli.run([*by_priority, *asked, "--requests", "2"]) == 2
        assert "policy='priority': no request has a priority" in capsys.readouterr().err
    found = report(capsys, *by_priority, "--prompt-tokens", ranked, "--output-tokens", ranked)
    assert found["requests_finished"] == 2


def test_the_exit_code_says_when_nothing_was_served(capsys: pytest.CaptureFixture[str]) -> None:
    too_long = ["--requests", "30", "--rate", "5", "--output-tokens", "5", "--prompt-tokens"]
    assert cli.run([*BASE, *too_long, "200000"]) == 1
    shown = capsys.readouterr()
    assert "no request was served" in shown.err
    assert shown.out.count("needs 200,004 positions") == 8 and "and 22 more" in shown.out
    assert cli.run([*BASE, *too_long, "200000", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["requests_rejected"] == found["errors_in_all"] == 30
    assert len(found["errors"]) == 20
    assert cli.run([*BASE, *too_long, "uniform:100000:160000"]) == 0, "some were served"
    assert "needs" in capsys.readouterr().out


def test_the_help_says_what_a_replica_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["simulate", "--help"]) == 0
    assert "all GPUs if left out" in " ".join(capsys.readouterr().out.replace("│", " ").split())
    load = ["--requests", "2", "--rate", "1", "--prompt-tokens", "9", "--output-tokens", "2"]
    eight = ["simulate", "--model", "llama-3.1-70b", "--gpu", "H100", "--gpus", "8", *load]
    assert report(capsys, *eight)["tp"] == 8
    found = report(capsys, *eight, "--tp", "4")
    assert (found["tp"], found["replicas"]) == (4, 2)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--prompt-tokens", "many"], "prompt_tokens='many': must be an integer"),
        (["--rate", "0"], "rate=0"),
        (["--requests", "0"], "requests=0"),
        (["--prefix-share", "2"], "prefix_share=2"),
        (["--preemption", "drop"], "preemption='drop': must be one of recompute, swap"),
        (["--block-size", "0"], "block_size=0"),
        (["--gpu", "H1000"], "gpu="),
        (["--model", "llama-3.1-405b"], "model='llama-3.1-405b': no block is left"),
        (["--tp", "3", "--gpus", "3"], "tp=3"),
        (["--max-batched-tokens", "10"], "max_batched_tokens=10: must be at least max_running"),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    change: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*BASE, *LOAD, *change]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"kvlab: {named}") and said.count("\n") == 1


def test_simulating_loads_no_torch() -> None:
    code = (
        "import sys; from kvlab import cli; "
        f"cli.run({[*BASE, *LOAD, '--json']!r}); "
        "sys.exit(any(n in sys.modules for n in ('torch', 'transformers', 'pint')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0

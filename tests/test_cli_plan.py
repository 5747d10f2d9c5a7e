"""`kvlab plan`: its JSON, its tables, its errors, and what it leaves unloaded."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kvlab import cli
from kvlab.arithmetic.catalogue import find_model

BASE = ["plan", "--model", "llama-3.1-70b", "--gpu", "H100", "--gpus", "8", "--tp", "8"]
FULL = [*BASE, "--context", "131072"]


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """Run the command with --json and return what it prints."""
    assert cli.run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_eight_nominal_cards_are_planned_from_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = report(capsys, *FULL, "--gpu-bytes", "80000000000", "--utilization", "1")
    assert round(found["concurrency"], 1) == 11.6
    assert found["admission_bound"] == 11
    assert found["concurrency"] == found["pooled_concurrency"]
    overhead = str(3e9 / 2**30)
    less = report(capsys, *FULL, "--gpu-bytes", "80000000000", "--overhead-gib", overhead)
    assert round(less["concurrency"], 2) == 9.57


def test_json_has_the_numbers_of_a_rank_and_of_the_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = report(capsys, *BASE, "--context", "8192", "--output", "1024", "--users", "20")
    assert found["peak_positions"] == 9216
    assert found["bytes_per_token"] == 8 * found["bytes_per_token_per_rank"] == 327_680
    assert found["request_bytes"] == 9216 * 327_680
    assert found["fits"] is True and found["short_bytes"] == 0
    assert found["command"].startswith("vllm serve meta-llama/Llama-3.1-70B")
    assert found["tpot_seconds"] > 0 and found["ttft_seconds"] > 0


def test_users_that_do_not_fit_are_told_by_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, *FULL, "--users", "20")
    assert found["fits"] is False and found["short_bytes"] > 0
    assert found["verdict"].startswith("does not fit by ")
    assert found["next_change"] == "cache in fp8"
    assert found["headroom_bytes"] == 0


def test_tables_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*FULL, "--tpot-ms", "20"]) == 0
    shown = capsys.readouterr().out
    for words in ("left for caches", "admission bound", "the memory on the box", "vllm serve"):
        assert words in shown
    assert cli.run(["plan", "--model", "llama-3.1-70b", "--gpu", "T4", "--context", "8192"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith("weights and overhead exceed the usable memory of a rank no command")
    assert said.count("does not fit by") == 1
    assert "missing, no request" in said
    assert "missing, 1 request(s)" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--context", "0"], "context"),
        (["--context", "8192", "--utilization", "1.5"], "utilization"),
        (["--context", "8192", "--overhead-gib", "-1"], "overhead_gib"),
        (["--context", "8192", "--overhead-gib", "nan"], "overhead_gib"),
        (["--context", "8192", "--gpu", "H1000"], "gpu"),
        (["--context", "8192", "--tp", "3"], "tp"),
        (["--context", "8192", "--gpus", "12"], "gpus"),
        (["--context", "8192", "--cache-dtype", "int3"], "cache_dtype"),
        (["--context", "8192", "--tpot-ms", "0"], "tpot_ms"),
        (["--context", "8192", "--model", "no such model"], "model"),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["--tp", "3", "--gpus", "3"] if "3" in arguments else ["--gpus", "8", "--tp", "8"]
    given = ["plan", "--model", "llama-3.1-70b", "--gpu", "H100", *base, *arguments]
    assert cli.run(given) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"kvlab: {named}=") and said.count("\n") == 1


def test_planning_loads_no_torch() -> None:
    code = (
        "import sys; from kvlab import cli; "
        f"cli.run({[*FULL, '--json']!r}); "
        "sys.exit(any(n in sys.modules for n in ('torch', 'transformers', 'pint')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


def people(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command and return its tables as words with single spaces."""
    assert cli.run(["plan", *arguments]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_users_without_gpus_get_the_fewest_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "llama-3.1-70b", "--gpu", "H100", "--context", "8192", "--users", "50"]
    found = report(capsys, "plan", *asked)
    assert (found["gpus"], found["tp"], found["fits"], found["context"]) == (4, 4, True, 8192)
    assert found["notes"][0].startswith("no layout was given: the fewest GPUs")
    assert "+0" not in people(capsys, *asked, "--gpus", "1")
    never = report(capsys, "plan", *asked, "--ttft-ms", "1")
    assert never["gpus"] == 1 and "one GPU is shown" in never["notes"][0]


def test_a_config_on_disk_is_served_from_its_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = dict(find_model("qwen3-4b").config)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for given in (tmp_path, tmp_path / "config.json"):
        options = ["--gpu", "A100", "--gpus", "1", "--context", "32768", "--users", "10"]
        found = report(capsys, "plan", "--model", str(given), *options)
        assert found["command"].startswith(f"vllm serve {shlex.quote(str(tmp_path))} --dtype")
        assert found["command"].endswith("--max-num-seqs 10")


def test_there_is_one_verdict_about_the_users(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["--model", "llama-3.1-8b", "--gpu", "L4", "--gpus", "1", "--context", "8192"]
    said = people(capsys, *shape, "--users", "4", "--tpot-ms", "10")
    assert "not enough: 0 of 4 user(s) are served" in said and "no command" in said
    assert "in time" in said.partition("What one change buys")[2]
    assert "enough: all 4 user(s) are served" in people(capsys, *shape, "--users", "4")

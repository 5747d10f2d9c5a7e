"""`kvlab size`: its JSON, its table, what it refuses, and what it does not load."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvlab import cli

KEYS = [
    "model",
    "bytes_per_token",
    "bytes_per_token_per_rank",
    "kv_bytes",
    "state_bytes",
    "cross_bytes",
    "index_bytes",
    "request_bytes",
    "request_bytes_per_rank",
    "reserved_bytes",
    "layers",
    "notes",
]


def report(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert cli.run(["size", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_json_has_its_keys_and_exact_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, "--model", "llama-3.1-70b", "--context", "8192", "--batch", "4")
    assert list(found) == KEYS
    assert found["model"] == "meta-llama/Llama-3.1-70B"
    assert found["bytes_per_token"] == 327_680
    assert found["kv_bytes"] == found["request_bytes"] == found["reserved_bytes"] == 10 * 2**30
    layer = {"kind": "full", "count": 80, "elements_per_token": 2048, "window": None}
    assert found["layers"] == [layer]
    assert found["notes"] == []


def test_ranks_types_and_sources_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--model", "llama-3.1-70b", "--context", "10")
    assert report(capsys, *options, "--tp", "16")["bytes_per_token_per_rank"] == 40_960
    assert report(capsys, *options, "--pp", "4")["bytes_per_token_per_rank"] == 81_920
    assert report(capsys, *options, "--cache-dtype", "q8_0")["bytes_per_token"] == 174_080
    vision = ("--model", "llama-3.2-90b-vision", "--context", "10", "--source-length", "100")
    assert report(capsys, *vision)["cross_bytes"] == 20 * 100 * 4096


def test_a_config_file_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {"model_type": "zork", "num_hidden_layers": 2, "num_attention_heads": 4}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"head_dim": 8}), encoding="utf-8")
    found = report(capsys, "--config", str(path), "--context", "3")
    assert found["bytes_per_token"] == 2 * 2 * 4 * 8 * 2
    assert "'zork' is unknown" in found["notes"][0]


def test_people_get_a_table_with_both_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["size", "--model", "llama-3.1-70b", "--context", "131072"]) == 0
    table = capsys.readouterr().out
    assert "40.00 GiB (42.95 GB)" in table
    assert "327,680" in table
    assert "vLLM charges" in table and "llama.cpp charges" in table


def test_people_are_told_what_an_engine_cannot_hold(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "llama-3.1-8b", "--context", "100", "--cache-dtype", "q8_0"]
    assert cli.run(["size", *options]) == 0
    said = capsys.readouterr().out
    assert "vLLM has no cache of type q8_0" in said and "vLLM charges" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "llama-3.1-70b", "--context", "0"], "context=0"),
        (["--model", "llama-3.1-70b", "--context", "-4"], "context=-4"),
        (["--model", "llama-3.1-70b", "--context", "8k"], "--context"),
        (["--model", "llama-3.1-70b", "--context", "1.5"], "--context"),
        (["--model", "llama-3.1-70b", "--context", "1", "--batch", "0"], "batch=0"),
        (["--model", "llama-3.1-70b", "--context", "1", "--tp", "3"], "tp=3: must divide the 64"),
        (["--model", "llama-3.1-70b", "--context", "1", "--pp", "81"], "pp=81"),
        (["--model", "llama-3.1-70b", "--context", "1", "--cache-dtype", "int3"], "int3"),
        (["--model", "nobody/Nothing-1B", "--context", "1"], "Nothing-1B"),
        (["--config", "no-such-file.json", "--context", "1"], "no-such-file.json"),
        (["--context", "1"], "give either --model NAME or --config FILE"),
        (["--model", "a", "--config", "b", "--context", "1"], "give either"),
        (["--model", "llama-3.1-70b"], "--context"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert cli.run(["size", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err and captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_a_trillion_tokens_are_sized(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, "--model", "llama-3.1-8b", "--context", str(10**12))
    assert found["kv_bytes"] == 131_072 * 10**12


def test_sizing_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from kvlab.cli import run\n"
        "run(['size', '--model', 'deepseek-v3', '--context', '9', '--json'])\n"
        "heavy = {'torch', 'transformers', 'pint', 'numpy'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_windows_are_charged_for_the_batched_tokens_that_are_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["size", "--model", "gemma-3-27b", "--context", "10001"]
    assert cli.run(options) == 0
    usual = capsys.readouterr().out
    assert "8,192 tokens of a step" in usual and "4.99 GiB" in usual
    assert cli.run([*options, "--max-batched-tokens", "2048"]) == 0
    fewer = capsys.readouterr().out
    assert "2,048 tokens of a step" in fewer and "2.18 GiB" in fewer


def test_a_plain_model_has_no_rows_that_repeat(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["size", "--model", "llama-3.1-8b", "--context", "262144"]) == 0
    said = capsys.readouterr().out
    assert "1 x 262,144 tokens" in said and said.count("34,359,738,368") == 3
    assert "the model was made for 131,072 positions" in said
    assert "reservation" not in said and "window is full" not in said

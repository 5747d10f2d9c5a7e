"""`kvlab explain-log`: tables for people, JSON for programs, one line for what cannot be read."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvlab.arithmetic.logs.rows import load_engine_rows
from kvlab.cli import run

LOG = (
    "Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.1-8B',"
    " dtype=torch.bfloat16, tensor_parallel_size=1\n"
    "Available KV cache memory: 3.81 GiB\nGPU KV cache size: 31,232 tokens\n"
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A file with a small log."""
    path = tmp_path / "start.log"
    path.write_text(LOG, encoding="utf-8")
    return str(path)


def test_people_get_printed_and_predicted_side_by_side(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain-log", log]) == 0
    shown = capsys.readouterr().out
    assert "31,232" in shown and "31,200" in shown and "128.00 KiB" in shown
    assert "taken as given" in shown and "3.81 GiB" in shown


def test_programs_get_json(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain-log", log, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["engine"] == "vllm" and found["version"] == "0.11.0"
    assert found["model"] == "meta-llama/Llama-3.1-8B"
    assert found["findings"][0]["predicted"] == 31_200
    assert found["findings"][0]["verdict"] == "equal within rounding"
    assert found["given"] == {"available": "3.81 GiB"}


def test_a_paste_comes_through_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    assert run(["explain-log", "-", "--json"]) == 0
    assert "31200" in capsys.readouterr().out


def test_options_win_over_the_log(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "llama-3.1-70b", "--tp", "8", "--cache-dtype", "fp8", "--json"]
    assert run(["explain-log", log, *options]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["model"] == "meta-llama/Llama-3.1-70B"
    assert found["bytes_per_token_per_rank"] == 20_480 and found["tp"] == 8


def test_a_config_file_says_whose_cache_it_is(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    shape = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    config.write_text(json.dumps({"model_type": "llama", **shape}), encoding="utf-8")
    assert run(["explain-log", log, "--config", str(config), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["bytes_per_token_per_rank"] == 2 * 2 * 64 * 2


@pytest.mark.parametrize("row", load_engine_rows(), ids=lambda row: row.id)
def test_every_row_is_shown_without_an_error(
    row: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "row.log"
    path.write_text(row.text, encoding="utf-8")  # type: ignore[attr-defined]
    assert run(["explain-log", str(path)]) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02", "is binary"),
        (b"hello world", "holds no line"),
        (b"x" * 10_000_000, "holds no line"),
    ],
    ids=["empty", "binary", "no log", "10 MB of junk"],
)
def test_what_cannot_be_read_is_one_line(
    data: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.log"
    path.write_bytes(data)
    assert run(["explain-log", str(path)]) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.strip().splitlines()) == 1 and len(error) < 400


@pytest.mark.parametrize(
    "options",
    [["missing.log"], ["--model", "no-such-model"], ["--cache-dtype", "int3"], ["--tp", "0"]],
)
def test_a_wrong_option_is_one_line(
    options: list[str], log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = options if options[0] == "missing.log" else [log, *options]
    assert run(["explain-log", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_no_torch_is_loaded(log: str) -> None:
    script = (
        "import sys; from kvlab.cli import run; run(['explain-log', sys.argv[1], '--json']);"
        "print(sorted({'torch', 'transformers', 'pint'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, log], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"

"""`kvlab quality`: the JSON it promises, the table, and one line for every refusal."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_folder import write_folder

from kvlab import cli, cli_quality
from kvlab.cache import CACHE_NAMES

KEYS = [
    "model",
    "cache",
    "recall",
    "loss",
    "kl",
    "top1",
    "cache_bytes",
    "full_cache_bytes",
    "tokens_per_second",
    "tokens",
    "seed",
]
TINY = ["quality", "--model", "tiny", "--device", "cpu", "--cache"]
SMALL = ["--tokens", "64", "--facts", "4", "--sequences", "2"]
PER_TOKEN = 2 * 2 * 2 * 32 * 4  # bytes: K and V, layers, KV heads, head_dim, float32


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small untrained model with a vocabulary of its own, which reads prose."""
    return write_folder(tmp_path_factory.mktemp("models") / "reader")


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run the command with `--json` and return what it printed."""
    assert cli.run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_default_is_512_tokens_with_32_facts(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, *TINY, "preallocated")
    assert list(found) == KEYS
    assert (found["model"], found["cache"], found["seed"]) == ("tiny", "preallocated", 0)
    assert (found["tokens"], found["kl"], found["top1"]) == (512, 0.0, 1.0)
    assert found["recall"] >= 0.99
    assert found["cache_bytes"] == found["full_cache_bytes"] == 512 * PER_TOKEN


def test_flags_reach_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["int4", *SMALL, "--residual", "0", "--sinks", "4", "--granularity", "token"]
    found = report(capsys, *TINY, *arguments, "--symmetric")
    codes, scales = 60 * 32 * 2 // 2, 60 * 2 * 2  # of one layer's keys: 4 bits each; FP16 a token
    assert found["cache_bytes"] == 2 * 2 * (codes + scales) + 4 * PER_TOKEN
    found = report(capsys, *TINY, *arguments, "--zero-point")
    assert found["cache_bytes"] == 2 * 2 * (codes + 2 * scales) + 4 * PER_TOKEN
    found = report(capsys, *TINY, "int8", *SMALL, "--residual", "0", "--group", "16")
    assert found["cache_bytes"] == 64 * (PER_TOKEN // 4) * (16 + 2) // 16
    found = report(capsys, *TINY, "int4", *SMALL, "--option", "key_format=exact")
    assert found["kl"] == 0.0  # values are exact too: the residual is longer than the text


@pytest.mark.parametrize(("budget", "kept"), [("25%", 16), ("16", 16), ("100%", 64)])
def test_a_budget_is_tokens_or_a_share(
    capsys: pytest.CaptureFixture[str], budget: str, kept: int
) -> None:
    found = report(capsys, *TINY, "h2o", *SMALL, "--budget", budget)
    assert found["cache_bytes"] == kept * PER_TOKEN


def test_the_same_seed_repeats_every_digit(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*TINY, "random", *SMALL, "--budget", "50%", "--seed"]
    first, second, other = (report(capsys, *arguments, seed) for seed in ("7", "7", "8"))
    for found in (first, second, other):
        del found["tokens_per_second"]
    assert first == second != other
    assert first["seed"] == 7


def test_prose_has_no_recall_and_no_seed(capsys: pytest.CaptureFixture[str], reader: Path) -> None:
    prose = ["quality", "--model", str(reader), "--device", "cpu", "--tokens", "24", "--cache"]
    found = report(capsys, *prose, "offloaded", "--tier", "disk")
    assert list(found) == KEYS
    assert (found["recall"], found["seed"], found["kl"]) == (None, None, 0.0)
    assert found["loss"] > 0
    assert report(capsys, *prose, "random", "--budget", "8", "--seed", "3")["seed"] == 3


def test_the_table_names_every_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*TINY, "fp8", *SMALL, "--layers"]) == 0
    shown = capsys.readouterr()
    for word in ("recall", "perplexity", "logit KL", "first choice", "4.00 times", "tokens/s"):
        assert word in shown.out
    for column in ("layer", "keys", "values", "attention"):
        assert column in shown.out
    assert "seed 0" in shown.err
    assert cli.run([*TINY, "window", "--budget", "8", *SMALL, "--layers"]) == 0
    assert "-" in capsys.readouterr().out  # no error of keys where others are held


def test_the_help_names_every_cache_that_can_be_measured() -> None:
    without = {"none", "growing"}
    assert cli_quality.NAMES.split(", ") == [n for n in CACHE_NAMES if n not in without]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["int3"], "--cache='int3': must be one of none, growing"),
        (["none"], "--cache='none': keeps nothing"),
        (["window"], "--budget=None: the window cache needs a budget"),
        (["window", "--budget", "0"], "--budget='0': must be 1 token or more"),
        (["window", "--budget", "half"], "--budget='half': must be 1 token or more"),
        (["window", "--budget", "150%"], "--budget='150%': is more than all tokens"),
        (["sinks", "--budget", "2"], "--budget=2: must be at least 4"),
        (
            ["fp8", "--budget", "25%"],
            "--budget='25%': the fp8 cache takes nbits, --granularity, --group",
        ),
        (["fp8", "--zero-point"], "--zero-point/--symmetric=False: fp8 has no zero point"),
        (["int4", "--group", "7", "--residual", "0"], "--group=7: must divide the 32 channels"),
        (["int4", "--group", "7"], "--group=7: must divide the 32 channels"),
        (["int8", "--granularity", "group", "--group", "5"], "--group=5: must divide"),
        (["fp8", "--group", "8"], "--group=8: neither keys nor values have groups; say --gran"),
        (["int4", "--granularity", "row"], "--granularity='row': must be one of tensor, token"),
        (["int4", "--residual", "-1"], "--residual=-1: must be a whole number"),
        (["int4", "--sinks", "-1"], "--sinks=-1: must be a whole number"),
        (["offloaded", "--tier", "cloud"], "--tier='cloud': must be one of host, disk"),
        (["int4", "--option", "recent"], "--option='recent': must be name=value"),
        (["int4", "--option", "nbits=3"], "nbits=3: must be one of 8, 4, 2"),
        (["int4", "--option", "key_format=[]"], "key_format=[]: must be one of fp8"),
        (["fp8", "--sequences", "0"], "--sequences=0: must be a whole number"),
        (["fp8", "--tokens", "60"], "--tokens=60: 32 facts and their questions need 161"),
        (["fp8", "--dtype", "int3"], "--dtype='int3': must be float32"),
        (["fp8", "--layers", "--json"], "--layers=True: is a table to look at"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert cli.run([*TINY, *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert sentence in shown.err
    assert shown.err.count("\n") == 1


def test_facts_are_not_for_prose(capsys: pytest.CaptureFixture[str], reader: Path) -> None:
    arguments = ["quality", "--model", str(reader), "--cache", "fp8", "--facts", "4"]
    assert cli.run(arguments) == 2
    assert "--facts=4: facts are for the retrieval language" in capsys.readouterr().err


def test_a_wrong_option_is_said_before_a_model_is_looked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["quality", "--model", "nowhere", "--cache", "window"]) == 2
    assert "--budget=None" in capsys.readouterr().err


def test_a_model_that_is_not_there_is_named_by_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["quality", "--model", "nowhere", "--cache", "fp8"]) == 2
    assert capsys.readouterr().err.startswith("kvlab: --model='nowhere': no such folder")


def test_what_does_not_fit_the_model_is_said_before_the_model_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kvlab.model import quality

    def never(*_: object) -> None:
        raise AssertionError("the model was run")

    monkeypatch.setattr(quality, "read", never)
    assert cli.run([*TINY, "int4", "--group", "7"]) == 2
    assert "--group=7" in capsys.readouterr().err

"""`kvlab serve-demo`: a real model under pressure, as JSON and as a table."""

import json

import pytest

from kvlab import cli

BASE = ["serve-demo", "--model", "tiny", "--device", "cpu", "--dtype", "float32"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """Run the command with --json and return what it prints."""
    assert cli.run([*BASE, *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("way", ["recompute", "swap"])
def test_a_tight_pool_gives_the_answers_of_a_roomy_one(
    way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--requests", "5", "--max-new-tokens", "12", "--samples", "2", "--preemption", way]
    tight, roomy = run(capsys, *asked), run(capsys, *asked, "--num-blocks", "500")
    assert tight["preemptions"] > 0 and roomy["preemptions"] == 0
    assert tight["answers"] == roomy["answers"] and len(tight["answers"]) == 10
    assert tight["requests_finished"] == 5
    assert tight["metrics"]["vllm:generation_tokens_total"] == tight["tokens_generated"] == 120
    assert 0 < tight["ttft_seconds"]["p50"] <= tight["makespan_seconds"]


def test_what_does_not_fit_is_answered_with_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "--requests", "2", "--num-blocks", "3")
    assert found["requests_finished"] == 0
    assert found["answers"][0]["error"] == "request 0: needs 5 blocks, has 3"


def test_the_table_shows_every_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*BASE, "--requests", "3", "--max-new-tokens", "4", "--num-blocks", "12"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("done") == 3
    for words in ("0 of 12 blocks", "0 run, 0 wait", "text so far"):
        assert words in shown


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--requests", "0"], "--requests=0"),
        (["--samples", "0"], "--samples=0"),
        (["--max-new-tokens", "0"], "--max-new-tokens=0"),
        (["--block-size", "0"], "--block-size=0"),
        (["--num-blocks", "0"], "--num-blocks=0"),
        (["--preemption", "drop"], "--preemption='drop'"),
        (["--prompt", ""], "--prompt=''"),
        (["--model", "no-such"], "--model='no-such'"),
        (["--dtype", "int3"], "--dtype='int3'"),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    change: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*BASE, *change]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"kvlab: {named}") and said.count("\n") == 1

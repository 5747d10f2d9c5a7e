"""`kvlab audit`: its JSON, its table, its reasons, what it refuses and what it does not load."""

import json
import subprocess
import sys
from typing import Any

import pytest

from kvlab import cli
from kvlab.cli_audit import write_computed
from kvlab.course.audit import audit_rows
from kvlab.course.claims import VERDICTS

KEYS = ["id", "claimed", "computed", "unit", "verdict", "why"]


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert cli.run(["audit", *options]) == 0
    return capsys.readouterr().out


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_the_json_holds_every_row_and_comes_back_unchanged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = json.loads(printed(capsys, "--json"))
    assert found == [row.as_json() for row in audit_rows()]
    assert len(found) == 230
    for row in found:
        assert list(row) == KEYS
        value = row["computed"]
        many = value if isinstance(value, list) else [value]
        assert value is None or (many and all(map(is_number, many))), row["id"]
        assert row["verdict"] in VERDICTS


def test_a_topic_is_a_part_of_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads(printed(capsys, "--json"))
    part = json.loads(printed(capsys, "--topic", "paging", "--json"))
    assert len(part) == 25
    assert all(row in whole for row in part)


def test_an_unknown_topic_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["audit", "--topic", "weather"]) == 2
    said = capsys.readouterr().err
    assert "topic='weather'" in said
    assert "paging" in said
    assert said.count("\n") == 1


def test_the_table_is_readable_in_100_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = printed(capsys).splitlines()
    assert max(map(len, lines)) <= 100
    starts = {line.split()[0]: line for line in lines if line.strip()}
    for row in audit_rows():  # each name and each verdict stands whole in one line
        assert starts[row.id].split()[-1] in (row.verdict, "rounded"), row.id
    assert "…" not in "".join(lines)
    assert lines[-1] == "kvlab audit --topic NAME says why."


def test_a_topic_is_shown_with_its_reasons(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = printed(capsys, "--topic", "sizing")
    assert max(map(len, text.splitlines())) <= 100
    flat = " ".join(text.split())
    for row in audit_rows("sizing"):
        for said in (f"{row.id} {row.verdict}", row.statement, row.why, row.source):
            assert " ".join(said.split()) in flat


@pytest.mark.parametrize(
    ("row_id", "written"),
    [
        ("mqa-92-sessions", "11"),
        ("exercise-1", "248 / 62 / 15 / 3 requests"),
        ("units-mb-vs-mib", "268.44 MB; 17.18 GB"),
        ("o-n2-to-o-n-per-step", "7.997 / 4.000 / 4.000 / 2 x"),
        ("costs-as-much-as-a-house", "-"),
    ],
)
def test_numbers_are_written_with_their_units(row_id: str, written: str) -> None:
    row = next(row for row in audit_rows() if row.id == row_id)
    assert write_computed(row).startswith(written)


def test_the_audit_loads_no_torch() -> None:
    ask = (
        "import sys; from kvlab import cli; assert cli.run(['audit', '--json']) == 0;"
        " sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr

"""The claim audit: all rows there, every number equal to a reference, every fault named."""

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import kvlab.course
from kvlab.course.audit import AuditRow, audit_rows, count_verdicts
from kvlab.course.claims import load_claims
from kvlab.errors import InvalidArgument

# id -> value, and verdict -> ids, worked out by other code than ours from the same claims.
REFERENCE = json.loads((Path(__file__).parent / "audit_expected.json").read_text("utf-8"))
EXPECTED: dict[str, Any] = REFERENCE["values"]
ROWS = audit_rows()
OTHER_VERDICT = {
    "batching-only-way": "wrong",
    "kv-bytes-equal-weights-70b": "holds-with-rounding",
    "sessions-with-utilisation": "wrong",
    "throughput-2-4x-same-latency": "conditional",
    "indirect-information-flow": "holds-with-rounding",
}
"""Where our verdict is not that of the reference; each row says why."""


def row(row_id: str) -> AuditRow:
    return next(one for one in ROWS if one.id == row_id)


def test_each_of_the_230_claims_is_there_once() -> None:
    assert len(ROWS) == len({one.id for one in ROWS}) == 230
    assert {one.id for one in ROWS} == set(EXPECTED)


@pytest.mark.parametrize("topic", dict.fromkeys(one.topic for one in ROWS))
def test_every_number_equals_the_reference(topic: str) -> None:
    for one in audit_rows(topic):
        found, wanted = one.computed(), EXPECTED[one.id]
        assert wanted is None or found == pytest.approx(wanted, rel=1e-12, abs=1e-14), one.id
        assert not isinstance(found, bool | str), one.id


def test_verdicts_differ_from_the_reference_only_where_it_is_said() -> None:
    theirs = {i: verdict for verdict, ids in REFERENCE["verdicts"].items() for i in ids}
    ours = {one.id: one.verdict for one in ROWS}
    assert {i: verdict for i, verdict in ours.items() if verdict != theirs[i]} == OTHER_VERDICT
    words = ("conditional", "wrong", "rounded")
    for row_id in OTHER_VERDICT:
        assert any(word in row(row_id).why.lower() for word in words), row_id
    assert sum(count_verdicts(ROWS).values()) == 230


def test_every_row_has_words_a_source_and_a_day() -> None:
    for one in ROWS:
        assert min(len(one.statement), len(one.claimed), len(one.source)) > 0
        assert one.as_of.year == 2026
        assert len(one.why) > 5
        assert ("Nothing is counted: " in one.why) == (one.computed() is None), one.id


def calls_in(expression: Any) -> int:
    if isinstance(expression, list):
        return sum(map(calls_in, expression))
    if isinstance(expression, dict):
        return 1 + sum(map(calls_in, expression["arguments"].values()))
    return 0


def test_no_number_is_written_into_a_row_instead_of_computed() -> None:
    assert all(calls_in(one.compute) for one in ROWS if one.compute is not None)


def test_a_claim_that_a_chapter_shows_is_taken_from_its_card() -> None:
    cards = {claim.id: claim for claim in load_claims()}
    shown = [one for one in ROWS if one.id in cards]
    for one in shown:
        card = cards[one.id]
        assert one.card == card.chapter, f"{one.id}: say {{'claim': '{one.id}'}} in data/audit"
        assert (one.statement, one.verdict) == (card.statement, card.verdict)
        assert one.why.startswith(card.condition)
    assert len(shown) > 80


def test_a_card_can_be_picked_from_extended_or_counted_anew() -> None:
    assert load_claims() and row("mqa-92-sessions").computed() == 11  # the card has [92, 11]
    assert row("saving-90-percent").computed() == pytest.approx([32.5, 67.0, 78.5, 87.7])
    assert row("capacity-and-bandwidth-separate").computed() == pytest.approx(
        [25.6416, 3.2052], rel=1e-4
    )
    assert row("server-640gb").why.endswith("less than the driver reports.")


def test_functions_of_the_audit_hide_no_function_of_another_module() -> None:
    names: list[str] = []
    for module in iter_modules(kvlab.course.__path__):
        if module.name.startswith("claim_math"):
            names += [f.__name__ for f in import_module(f"kvlab.course.{module.name}").ALL]
    assert sorted(names) == sorted(set(names))


def test_an_unknown_topic_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match=r"topic='weather'.*qkv.*sizing"):
        audit_rows("weather")


OWN = {
    "id": "a",
    "topic": "gqa",
    "statement": "b",
    "claimed": "2x",
    "verdict": "wrong",
    "why": "c",
    "compute": {"function": "divide", "arguments": {"a": 8, "b": 2}},
    "source": "d",
    "as_of": "2026-11-30",
}
CARD = {"claim": "mqa-92-sessions", "topic": "gqa"}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "gqa.json").write_text(json.dumps({"audit": rows}), encoding="utf-8")
    return folder


def test_a_file_of_rows_is_read(tmp_path: Path) -> None:
    first, second = audit_rows("gqa", write(tmp_path, OWN, {**CARD, "pick": [1, 0], "why": "E."}))
    assert (first.computed(), second.computed()) == (4, [11, 92])
    assert second.why.endswith(" E.")


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        (OWN | {"topic": "paging"}, "topic"),
        (OWN | {"verdict": "maybe"}, "verdict"),
        (OWN | {"compute": {"function": "eval", "arguments": {}}}, "compute"),
        (OWN | {"no_number": "both"}, "no_number"),
        ({k: v for k, v in OWN.items() if k != "compute"}, "no_number"),
        (OWN | {"as_of": "today"}, "as_of"),
        (OWN | {"extra": 1}, "extra"),
        (CARD | {"claim": "no-such-card"}, "claim"),
        (CARD | {"statement": "ours"}, "statement"),
        (CARD | {"pick": -1}, "pick"),
        (CARD | {"pick": 1, "compute": OWN["compute"]}, "pick"),
        ({"claim": "recompute-quadruples", "topic": "gqa", "pick": 0}, "pick"),
    ],
)
def test_a_faulty_row_is_named_with_its_field(
    tmp_path: Path, fault: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        audit_rows(path=write(tmp_path, fault))
    assert "gqa.json row 1" in caught.value.argument
    assert caught.value.argument.endswith(f", {field}")


def test_an_id_is_not_used_twice(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="is the id of another row"):
        audit_rows(path=write(tmp_path, OWN, OWN))

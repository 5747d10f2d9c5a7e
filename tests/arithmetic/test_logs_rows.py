"""Numbers that real engines printed: predicted, mistaken on purpose, and explained in words."""

import json
from pathlib import Path

import pytest

from kvlab.arithmetic.logs.finding import DIFFERS, Finding
from kvlab.arithmetic.logs.naive import NAIVE, bytes_per_token, naive_case
from kvlab.arithmetic.logs.predict import predict
from kvlab.arithmetic.logs.report import LogReport, explain_log
from kvlab.arithmetic.logs.rows import EngineRow, load_engine_rows
from kvlab.errors import InvalidArgument, KvlabError

PUBLISHED = load_engine_rows()
UNPUBLISHED = load_engine_rows(Path(__file__).with_name("engine_logs.json"))
ROWS = (*PUBLISHED, *UNPUBLISHED)
MUST_MATCH = [row for row in ROWS if row.use in ("assert", "consistency")]
IN_WORDS = [row for row in ROWS if row.use in ("anomaly", "explain_only")]
NAMED = [row for row in ROWS if row.model and row.model.split("/")[-1] in row.text]
WHOLE_MODEL = ("query_heads_instead_of_kv_heads", "head_dim_from_hidden_size")


def ids(row: EngineRow) -> str:
    """Name a test after its row."""
    return row.id


def checked(report: LogReport, quantity: str, printed: str) -> Finding:
    """Return the finding for one printed number; where a line is read twice, the closest."""
    found = [f for f in report.findings if (f.quantity, f.fact.printed) == (quantity, printed)]
    assert found, f"{quantity} {printed} was not predicted: {report.to_dict()}"
    return min(found, key=lambda finding: abs(finding.relative_error))


def test_the_rows_are_all_there() -> None:
    uses = [row.use for row in ROWS]
    counts = {use: uses.count(use) for use in ("assert", "consistency", "anomaly", "explain_only")}
    assert counts == {"assert": 61, "consistency": 20, "anomaly": 4, "explain_only": 5}
    assert len({row.id for row in ROWS}) == 90


def test_published_rows_have_a_source_that_can_be_cited() -> None:
    assert all("no repository" not in row.source for row in PUBLISHED)
    assert {row.source for row in UNPUBLISHED} == {"no repository on record"}


@pytest.mark.parametrize("row", MUST_MATCH, ids=ids)
def test_a_printed_number_is_predicted_within_its_digits(row: EngineRow) -> None:
    report = row.explain()
    for check in row.checks:
        finding = checked(report, check["quantity"], check["printed"])
        assert abs(finding.relative_error) <= check["tolerance"]
        assert finding.verdict != DIFFERS


@pytest.mark.parametrize("row", IN_WORDS, ids=ids)
def test_what_the_plain_formula_cannot_give_is_explained_in_words(row: EngineRow) -> None:
    report = row.explain()
    said = " ".join([*(r for f in report.findings for r in f.reasons), *report.notes])
    assert row.says and all(words in said for words in row.says)


@pytest.mark.parametrize("row", [row for row in ROWS if row.says], ids=ids)
def test_the_explanation_has_the_words_of_the_row(row: EngineRow) -> None:
    assert all(words in json.dumps(row.explain().to_dict()) for words in row.says)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_nothing_is_left_without_a_cause(row: EngineRow) -> None:
    reasons = [reason for finding in row.explain().findings for reason in finding.reasons]
    assert not [reason for reason in reasons if reason.startswith("not explained")]


@pytest.mark.parametrize("row", [row for row in ROWS if row.naive], ids=ids)
def test_a_wrong_number_is_that_of_a_named_formula_and_not_ours(row: EngineRow) -> None:
    report = row.explain().runs[0]
    for wrong in row.naive:
        case = naive_case(wrong["formula"], report.case)
        findings = predict(report.run, case)
        (found,) = [f for f in findings if f.fact.printed == wrong["printed"]]
        assert found.quantity == wrong["quantity"]
        assert found.estimate.value / found.fact.scale == pytest.approx(wrong["gives"], rel=2e-4)
        assert found.verdict == DIFFERS


@pytest.mark.parametrize("row", [row for row in ROWS if row.pitfalls], ids=ids)
def test_a_pitfall_has_the_factor_that_was_seen(row: EngineRow) -> None:
    case = row.explain().runs[0].case
    for pitfall in row.pitfalls:
        name = pitfall["formula"]
        base = case.setting(tp=1) if name in WHOLE_MODEL else case
        factor = bytes_per_token(naive_case(name, base)) / bytes_per_token(base)
        assert factor == pytest.approx(pitfall["factor"], rel=1e-3)


@pytest.mark.parametrize("row", NAMED, ids=ids)
def test_a_name_in_the_log_is_enough_to_find_the_model(row: EngineRow) -> None:
    alone, told = explain_log(row.text), row.explain()
    assert [f.estimate for f in alone.findings] == [f.estimate for f in told.findings]


def test_every_naive_formula_says_what_it_does_wrong() -> None:
    assert len(NAIVE) >= 12
    for name, formula in NAIVE.items():
        assert formula.name == name and formula.says and formula.apply.__doc__


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"id": "x"}, "engine"),
        ([], "must be an object"),
        ({**json.loads('{"id": "x"}'), "use": "maybe"}, "engine"),
    ],
)
def test_a_broken_row_is_named(row: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"rows": [row]}), encoding="utf-8")
    with pytest.raises(InvalidArgument, match=says):
        load_engine_rows(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rows": []}'])
def test_a_broken_file_of_rows_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KvlabError, match=r"broken\.json"):
        load_engine_rows(path)

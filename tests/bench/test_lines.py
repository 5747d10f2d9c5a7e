"""Lines of the bench: their ten keys, ratios both ways round, limits, aims and verdicts."""

import json

import pytest

from kvlab.bench.aims import AIMS, aim_of, verdict
from kvlab.bench.lines import FIELDS, Line, compared, read_line
from kvlab.bench.registry import ROWS
from kvlab.bench.timing import Times
from kvlab.errors import InvalidArgument


def test_json_has_the_ten_keys_in_order_and_comes_back_as_it_was() -> None:
    line = Line("decode: x", "ms a token", 10.0, 25.0, "peer", 8.0, 0.1, "why")
    found = json.loads(json.dumps(line.to_dict()))
    assert tuple(found) == FIELDS == (
        "work", "ours", "peer", "peer_name", "ratio", "limit", "of_limit", "spread", "unit", "note"
    )  # fmt: skip
    assert (found["ratio"], found["of_limit"]) == (2.5, 0.8)
    assert read_line(found) == line


def test_a_cost_is_better_when_lower_and_a_rate_when_higher() -> None:
    assert Line("batch: x", "s", ours=2.0, peer=6.0).ratio == 3
    assert Line("batch: x", "tokens/s", ours=6.0, peer=2.0).ratio == 3
    assert Line("batch: x", "tokens/s", ours=6.0, limit=12.0).of_limit == 0.5


def test_what_was_not_measured_has_no_ratio() -> None:
    line = Line("decode: GPU", "ms", note="no CUDA device here")
    assert (line.ratio, line.of_limit, verdict(line)) == (None, None, "not measured")


def test_the_best_peer_stands_beside_ours_and_the_others_in_the_note() -> None:
    peers = {"slow": Times((0.4,)), "quick": Times((0.2,))}
    line = compared("start: x", "ms", Times((0.1, 0.3)), peers, scale=1000)
    assert (line.ours, line.peer, line.peer_name, line.note) == (200, 200, "quick", "slow 400")
    rates = compared("batch: x", "tokens/s", Times((1.0,)), peers)
    assert rates.peer_name == "slow"
    assert compared("start: x", "ms", Times((0.1,)), {}).ratio is None


@pytest.mark.parametrize("change", [{"ours": "fast"}, {"note": None}, {"ours": True}])
def test_a_line_with_a_wrong_type_is_refused(change: dict) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(change))):
        read_line(Line("decode: x", "ms").to_dict() | change)


def test_a_line_with_other_keys_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="must have the keys"):
        read_line({"work": "decode"})


def test_every_aim_belongs_to_a_row() -> None:
    assert {start.partition(":")[0] for start in AIMS} <= set(ROWS)


@pytest.mark.parametrize(
    ("ours", "peer", "limit", "said"),
    [(10, 25, 8, "met"), (10, 24, 8, "missed"), (10, 25, 7, "missed"),
     (10, 25, None, "met in part"), (10, None, None, "not measured"), (10, None, 7, "missed")],
)  # fmt: skip
def test_a_line_is_judged_by_all_of_its_aim(ours, peer, limit, said) -> None:
    line = Line("decode: batch 1, x", "ms a token", ours, peer, "peer", limit)
    assert verdict(line) == said


def test_a_line_without_an_aim_is_stated() -> None:
    line = Line("simulator: x", "requests/s", ours=1.0)
    assert (aim_of(line), verdict(line)) == (None, "stated")


def test_a_verdict_from_rounds_that_differ_much_says_so() -> None:
    line = Line("start: import kvlab", unit="ms", ours=90.0, spread=8.2)
    assert verdict(line) == "met, noisy"

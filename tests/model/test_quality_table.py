"""Many caches on one task: one run of the full cache, rows in order, progress that adds up."""

import pytest

from kvlab.errors import InvalidArgument
from kvlab.model import quality
from kvlab.model.quality import Bench
from kvlab.model.quality_table import budget_curve, quality_table

TASK = {"tokens": 64, "facts": 4, "num_sequences": 2}


def test_rows_come_in_order_with_labels_that_tell_them_apart() -> None:
    chosen = ["growing", ("int8", {"residual_length": 0}), ("sinks", {"budget": 16})]
    rows = quality_table("tiny", chosen, **TASK)
    assert [row.label for row in rows] == ["growing", "int8 residual_length=0", "sinks 16"]
    assert rows[0].kl == 0.0 < rows[1].kl < rows[2].kl


def test_the_full_cache_is_run_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    honest = quality.read
    monkeypatch.setattr(quality, "read", lambda *a, **k: (runs.append(1), honest(*a, **k))[1])
    bench = Bench("tiny", **TASK)
    quality_table(bench, ["growing", "fp8"])
    assert len(runs) == 3
    quality_table(bench, ["int8"])
    assert len(runs) == 4


def test_progress_counts_every_pass_up_to_the_total() -> None:
    told: list[tuple[int, int]] = []
    bench = Bench("tiny", **TASK)
    for expected in (3 * bench.passes, 2 * bench.passes):  # the second time without the full one
        told.clear()
        quality_table(bench, ["growing", "fp8"], progress=lambda *pair: told.append(pair))
        assert told == [(done, expected) for done in range(1, expected + 1)]


def test_a_refusal_comes_before_the_first_pass() -> None:
    told: list[int] = []
    with pytest.raises(InvalidArgument, match="budget=None"):
        quality_table("tiny", ["growing", "window"], progress=lambda *_: told.append(1), **TASK)
    assert told == []


def test_a_curve_has_one_point_a_budget_and_policy() -> None:
    curves = budget_curve("tiny", ["window", "random"], budgets=("100%", "50%", 8), **TASK)
    assert list(curves) == ["window", "random"]
    for points in curves.values():
        held = [point.cache_bytes for point in points]
        per_token = points[0].full_cache_bytes // 64
        assert held == [64 * per_token, 32 * per_token, 8 * per_token]
        assert points[0].kl < 1e-6 < points[1].kl < points[2].kl

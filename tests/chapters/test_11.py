"""Every number and name in the prose of chapter 11, checked against the functions."""

import re
from pathlib import Path

import pytest

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.logs.rows import load_engine_rows
from kvlab.arithmetic.plan_pooled import assumption_steps, pooled_plan
from kvlab.arithmetic.plan_ranks import fit_in_budget
from kvlab.arithmetic.plan_timing import time_plan, what_binds
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.sizing import plan
from kvlab.course.checks_11 import asked_tokens
from kvlab.course.claims import find_claim

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "11_size_a_deployment.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))
GB, CONTEXT = 10**9, 131_072
BOX = {"gpu_bytes": 80 * GB, "gpus": 8, "context": CONTEXT}
H100 = {"gpu": "H100", "gpus": 8, "overhead_bytes": 3 * GB}
LONG = {"context": CONTEXT}
TWIN = {**find_model("llama-3.1-70b").config, "num_key_value_heads": 1}


def test_eleven_fit_on_nominal_cards_with_nothing_reserved_and_nine_with_overhead() -> None:
    assert round(plan("llama-3.1-70b", utilization=1, **BOX).concurrency, 1) == 11.6
    with_overhead = plan("llama-3.1-70b", overhead_bytes=3 * GB, **BOX)
    assert (round(with_overhead.concurrency, 2), with_overhead.admission_bound) == (9.57, 9)


def test_one_head_shrinks_the_cache_to_an_eighth_and_the_pool_promises_92() -> None:
    twin = plan(TWIN, utilization=1, **BOX)
    whole = plan("llama-3.1-70b", utilization=1, **BOX)
    assert 8 * twin.request_bytes == whole.request_bytes
    assert int(pooled_plan(twin).pooled) == 92 and "promises 92 requests" in PROSE
    assert twin.admission_bound == 11


def test_with_each_weight_kept_once_the_pool_would_hold_93() -> None:
    twin = plan(TWIN, utilization=1, **BOX)
    weights = twin.inputs.deployment.weights.total_bytes()
    assert int((640 * GB - weights) / twin.request_bytes) == 93
    assert "paid for on each card (93 if on one)" in PROSE


def test_four_assumptions_are_added_and_the_last_does_not_move_the_count() -> None:
    counts = [step.concurrency for step in assumption_steps(plan("llama-3.1-70b", **H100, **LONG))]
    assert len(counts) == 5 and "four silent assumptions" in PROSE
    assert len({f"{count:.2f}" for count in counts[:4]}) == 4
    assert f"{counts[3]:.2f}" == f"{counts[4]:.2f}"


def test_an_h100_reports_79_65_gib() -> None:
    driver = find_gpu("H100").driver_bytes
    assert f"reports {driver / 2**30:.2f} GiB = {driver / GB:.1f} GB" in PROSE


def test_a_token_waits_for_eight_passes_of_the_slowest_stage() -> None:
    timing = time_plan(plan(TWIN, **H100, **LONG, tp=1, pp=8))
    slowest = max(stage.bytes for stage in timing.tpot.stages)
    per_second = find_gpu("H100").bandwidth_gb_s * GB
    assert timing.tpot.seconds == pytest.approx(8 * slowest / per_second)
    assert timing.batch == 82 and -(-82 // 8) == 11


def test_by_hand_and_in_the_planner_24_of_41_are_in_time() -> None:
    late = plan("llama-3.1-70b", context=32_768, tpot_target=0.015, **H100)
    assert (late.admission_bound, what_binds(late).requests) == (41, 24)


def test_a_chunk_of_llama_4_is_8192_tokens() -> None:
    groups = read_model("llama-4-scout-17b-16e-instruct").groups
    assert {group.window for group in groups if group.window} == {8192}
    assert "their own chunk of 8,192" in PROSE


def test_the_exercise_on_a_log_is_not_answered_by_a_log_in_the_chapter() -> None:
    asked = f"{asked_tokens():,}"
    assert all(asked not in row.text for row in load_engine_rows())


def test_sixteen_ranks_take_as_many_bytes_of_a_token_as_eight() -> None:
    each = [
        plan("llama-3.1-70b", gpu="H100", tp=tp, context=8192).tightest.bytes_per_token
        for tp in (8, 16)
    ]
    assert each == [40_960, 40_960]


def test_stages_give_the_twin_nearly_all_that_the_pool_promised_and_cost_time() -> None:
    spread = {"context": CONTEXT, **H100}
    ranks, stages = plan(TWIN, **spread), plan(TWIN, **spread, tp=1, pp=8)
    both = pooled_plan(stages)
    assert both.copies == 1 and both.per_rank > 0.97 * both.pooled > 7 * ranks.concurrency
    assert time_plan(stages).tpot.seconds > time_plan(ranks).tpot.seconds


def test_eight_prompts_fill_20_gib_to_the_last_byte_and_only_seven_may_grow() -> None:
    budget = 20 * 2**30
    full = fit_in_budget("llama-3.1-70b", budget_bytes=budget, context=8192)
    grown = fit_in_budget("llama-3.1-70b", budget_bytes=budget, context=8192, output=1024)
    assert 8 * full.request_bytes == budget and grown.admission_bound == 7


def test_a_full_pool_reads_for_about_as_long_whatever_the_length() -> None:
    lengths = (8192, 32_768, CONTEXT)
    times = [time_plan(plan("llama-3.1-70b", context=n, **H100)) for n in lengths]
    steps = [timing.tpot.seconds for timing in times]
    assert max(steps) < 1.1 * min(steps)
    first = [timing.ttft.seconds for timing in times]
    assert first[2] / first[1] > 4 and first[1] / first[0] > 4


def test_a_target_of_20_ms_changes_what_binds() -> None:
    inputs = {"context": CONTEXT, **H100}
    binds = [what_binds(plan("llama-3.1-70b", tpot_target=t, **inputs)) for t in (None, 0.020)]
    assert [binding.limit for binding in binds] == ["capacity", "bandwidth"]
    assert "a target of 20 ms for each token" in PROSE


def test_one_million_tokens_are_328_gb_and_three_minutes() -> None:
    million = plan("llama-3.1-70b", context=10**6, **H100)
    assert round(million.request_bytes / GB) == 328
    assert million.admission_bound == 1
    assert 3 < time_plan(million).ttft.seconds / 60 < 3.1


def test_dividing_a_latent_by_eight_makes_it_eight_times_too_small() -> None:
    kimi = next(row for row in load_engine_rows() if row.id == "gh-kimi-k2-h100")
    need = next(f for f in kimi.explain().findings if f.quantity == "needed")
    assert need.estimate.value / 2**30 / kimi.naive[0]["gives"] == pytest.approx(8, rel=1e-3)


def test_each_card_of_the_chapter_is_about_sizing() -> None:
    cards = re.findall(r'claim_quiz\("([^"]+)"\)', TEXT)
    assert 2 <= len(cards) <= 5
    assert {find_claim(card).topic for card in cards} == {"sizing"}

"""The planner: what fits on which ranks, with the numbers that everybody can recompute."""

import pytest

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.plan_pooled import assumption_steps, pooled_plan
from kvlab.arithmetic.plan_ranks import RankPlan, fit_in_budget, tightest_rank
from kvlab.arithmetic.sizing import Plan, plan

GIB, GB = 2**30, 10**9
FULL = 131_072
NOMINAL = {"gpu_bytes": 80 * GB, "gpus": 8, "context": FULL}


def twin(num_kv_heads: int) -> dict[str, object]:
    """Llama 3.1 70B with another number of KV heads."""
    return {**find_model("llama-3.1-70b").config, "num_key_value_heads": num_kv_heads}


def test_eight_nominal_cards_hold_11_6_sessions_with_nothing_reserved() -> None:
    found = plan("llama-3.1-70b", utilization=1, **NOMINAL)
    assert found.concurrency == pytest.approx(11.6157, abs=1e-3)
    assert found.admission_bound == 11
    assert found.fits


def test_eight_nominal_cards_hold_9_57_sessions_once_memory_is_reserved() -> None:
    found = plan("llama-3.1-70b", utilization=0.9, overhead_bytes=3 * GB, **NOMINAL)
    both = pooled_plan(found)
    assert round(found.concurrency, 2) == 9.57
    assert both.pooled == both.per_rank
    assert both.copies == 1.0 and both.reasons == ()


def test_an_mqa_twin_promises_92_pooled_and_keeps_11_per_rank() -> None:
    found = pooled_plan(plan(twin(1), utilization=1, **NOMINAL))
    assert (int(found.pooled), int(found.per_rank), found.copies) == (92, 11, 8.0)
    assert found.reasons == ("1 KV head(s) on 8 ranks: each rank keeps a whole head, copied",)


def test_16_ranks_on_8_heads_still_keep_40_960_bytes_per_token() -> None:
    ranks = {
        tp: Deployment.of("llama-3.1-70b", tp=tp).request(1).bytes_per_token_per_rank
        for tp in (1, 2, 4, 8, 16, 32)
    }
    assert ranks == {1: 327_680, 2: 163_840, 4: 81_920, 8: 40_960, 16: 40_960, 32: 40_960}
    found = pooled_plan(plan("llama-3.1-70b", gpu_bytes=80 * GB, gpus=16, context=FULL))
    assert found.copies == 2.0 and found.pooled == pytest.approx(2 * found.per_rank)


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_latents_are_whole_on_every_rank(tp: int) -> None:
    found = plan("deepseek-v3", gpu="B200", gpus=tp, weights_dtype="fp8", context=4096)
    assert found.tightest.bytes_per_token == 70_272
    reasons = pooled_plan(found).reasons
    assert tp == 1 or f"each of the {tp} ranks keeps them whole" in reasons[0]


def test_two_nominal_cards_hold_no_session() -> None:
    found = plan("llama-3.1-70b", gpu_bytes=80 * GB, gpus=2, context=FULL, utilization=1)
    assert found.admission_bound == 0 and not found.fits
    assert found.concurrency == pytest.approx(0.44, abs=0.01)
    assert found.verdict.startswith("does not fit by ")


def test_the_driver_reports_more_than_the_box_and_the_plan_says_what_changes() -> None:
    found = plan("llama-3.1-70b", gpu="H100", gpus=8, context=FULL, utilization=1)
    assert found.admission_bound == 12
    steps = assumption_steps(found)
    assert [round(step.concurrency, 2) for step in steps[:2]] == [11.62, 12.64]
    assert "the box says 74.51 GiB (80.00 GB), the driver 79.65 GiB (85.52 GB)" in found.notes[0]


def test_assumptions_are_changed_one_at_a_time() -> None:
    inputs = {**NOMINAL, "gpu": "H100", "overhead_bytes": 3 * GB}
    steps = assumption_steps(plan(twin(1), **inputs))
    assert [step.assumption for step in steps] == [
        "the memory given, one pool, nothing reserved",
        "only 90% of it used",
        "overhead of each GPU taken off",
        "each rank on its own",
    ]
    assert steps[0].concurrency > steps[1].concurrency > steps[2].concurrency
    assert steps[3].concurrency == pytest.approx(9.57, abs=0.01)


@pytest.mark.parametrize(("unit", "expected"), [(GIB, [248, 62, 15, 3]), (GB, [230, 57, 14, 3])])
def test_62_gib_and_62_gb_hold_different_numbers_of_8b_requests(
    unit: int, expected: list[int]
) -> None:
    lengths = (2048, 8192, 32_768, FULL)
    ranks = [fit_in_budget("llama-3.1-8b", budget_bytes=62 * unit, context=n) for n in lengths]
    assert [rank.admission_bound for rank in ranks] == expected


def test_eight_growing_sequences_do_not_fit_into_20_gib() -> None:
    rank = fit_in_budget("llama-3.1-70b", budget_bytes=20 * GIB, context=8192, output=1024)
    assert 8 * rank.request_bytes == 22.5 * GIB
    assert rank.admission_bound == 7
    assert rank.short_bytes(8) == 2.5 * GIB
    now = fit_in_budget("llama-3.1-70b", budget_bytes=20 * GIB, context=8192)
    assert now.admission_bound == 8 and now.short_bytes(8) == 0


def test_eight_users_at_full_context_fit_on_eight_cards() -> None:
    found = plan("llama-3.1-70b", users=8, utilization=1, **NOMINAL)
    assert found.fits and 8 * found.request_bytes == 343_597_383_680
    assert found.headroom_bytes > 0


def test_a_million_tokens_of_70b_take_328_gb_of_cache() -> None:
    found = plan("llama-3.1-70b", gpu="H100", gpus=8, context=10**6)
    assert found.request_bytes == 327_680 * 10**6
    assert found.admission_bound == 1
    assert any("made for 131,072 positions" in note for note in found.notes)


def test_the_tightest_rank_is_not_the_one_with_the_least_memory() -> None:
    def rank(stage: int, gib: int, layers: int) -> RankPlan:
        left = gib * GIB
        return RankPlan(stage, layers, left, left, 0, 0, layers * 4096, layers * 2**20, 16, 16)

    assert tightest_rank((rank(0, 20, 30), rank(1, 18, 20))).stage == 0


def test_uneven_stages_are_judged_by_the_fullest() -> None:
    found = plan("llama-3.1-8b", gpu="L4", gpus=3, tp=1, pp=3, context=8192)
    assert [rank.layers for rank in found.ranks] == [11, 11, 10]
    assert found.concurrency == min(rank.concurrency for rank in found.ranks)
    assert any("uneven stages" in note for note in found.notes)
    assert any("stage" in reason for reason in pooled_plan(found).reasons)


def test_replicas_divide_requests_and_not_bytes() -> None:
    plans = [plan("llama-3.1-70b", gpu="H100", tp=8, dp=n, context=8192) for n in (1, 2, 4)]
    assert len({each.tightest.request_bytes for each in plans}) == 1
    one = plans[0].admission_bound
    assert [each.total_admission_bound for each in plans] == [one, 2 * one, 4 * one]


def test_gpus_are_shared_out_as_given() -> None:
    def shape(found: Plan) -> tuple[int, int, int]:
        return found.inputs.deployment.tp, found.inputs.deployment.pp, found.inputs.dp

    base = {"gpu": "H100", "context": 1024}
    assert shape(plan("llama-3.1-70b", gpus=8, **base)) == (8, 1, 1)
    assert shape(plan("llama-3.1-70b", gpus=8, tp=4, **base)) == (4, 1, 2)
    assert shape(plan("llama-3.1-70b", gpus=8, pp=2, **base)) == (4, 2, 1)
    assert shape(plan("llama-3.1-70b", gpus=8, dp=2, **base)) == (4, 1, 2)

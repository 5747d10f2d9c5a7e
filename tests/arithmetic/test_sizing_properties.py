"""What must hold for every plan, over random models and machines."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.plan_pooled import pooled_plan
from kvlab.arithmetic.plan_ranks import fit_in_budget
from kvlab.arithmetic.sizing import Plan, plan
from kvlab.arithmetic.storage import ModelStorage, uniform_model

GIB = 2**30
KV_HEADS = st.sampled_from([1, 2, 4, 8, 16])
RANKS = st.sampled_from([1, 2, 4, 8, 16])
DTYPES = ["int4", "fp8", "bf16", "fp32"]
MODELS = st.builds(
    lambda layers, heads, width: uniform_model(
        num_layers=layers, num_kv_heads=heads, head_dim=width, num_heads=16
    ),
    st.integers(1, 64),
    KV_HEADS,
    st.sampled_from([32, 64, 128]),
)


def planned(model: ModelStorage, **inputs: Any) -> Plan:
    """A plan on cards of 16 GiB with two billion parameters, unless said otherwise."""
    base = {"gpu_bytes": 16 * GIB, "parameters": 2 * 10**9, "context": 4096}
    return plan(model, **{**base, **inputs})


@settings(deadline=None)
@given(MODELS, RANKS, st.integers(1, 4), st.integers(1, 10**6))
def test_the_pool_never_promises_less_than_the_ranks(
    model: ModelStorage, tp: int, pp: int, context: int
) -> None:
    stages = min(pp, model.num_layers)
    both = pooled_plan(planned(model, tp=tp, pp=stages, context=context))
    assert both.pooled >= both.per_rank * (1 - 1e-12)
    assert both.copies >= 1


@settings(deadline=None)
@given(MODELS, st.integers(1, 10**6))
def test_a_rank_never_keeps_more_with_more_ranks(model: ModelStorage, context: int) -> None:
    plans = [planned(model, tp=tp, context=context).tightest for tp in (1, 2, 4, 8, 16)]
    cache = [rank.request_bytes for rank in plans]
    weights = [rank.weight_bytes for rank in plans]
    assert cache == sorted(cache, reverse=True)
    assert weights == sorted(weights, reverse=True)


@settings(deadline=None)
@given(MODELS, RANKS, st.integers(1, 4))
def test_the_ranks_together_keep_at_least_the_whole(model: ModelStorage, tp: int, pp: int) -> None:
    found = planned(model, tp=tp, pp=min(pp, model.num_layers))
    deployment = found.inputs.deployment
    assert tp * sum(rank.request_bytes for rank in found.ranks) >= found.request_bytes
    assert tp * sum(deployment.weight_bytes) >= deployment.weights.total_bytes()


@settings(deadline=None)
@given(MODELS, st.integers(1, 10**5), st.integers(0, 10**5), st.integers(0, 10**4))
def test_longer_requests_never_raise_the_admission_bound(
    model: ModelStorage, context: int, output: int, more: int
) -> None:
    short = planned(model, context=context, output=output)
    long = planned(model, context=context + more, output=output)
    assert long.admission_bound <= short.admission_bound
    assert planned(model, context=context, output=output + more).concurrency == long.concurrency


@settings(deadline=None)
@given(MODELS, st.integers(1, 10**5))
def test_narrower_caches_never_hold_fewer_requests(model: ModelStorage, context: int) -> None:
    bounds = [planned(model, context=context, cache_dtype=d).admission_bound for d in DTYPES]
    assert bounds == sorted(bounds, reverse=True)


@settings(deadline=None)
@given(MODELS, st.integers(1, 40), st.integers(0, 10**10))
def test_the_bound_fits_and_one_request_more_does_not(
    model: ModelStorage, gib: int, overhead: int
) -> None:
    found = planned(model, gpu_bytes=gib * GIB, overhead_bytes=overhead)
    rank, bound = found.tightest, found.admission_bound
    assert rank.budget_bytes >= 0 and found.headroom_bytes >= 0
    if rank.left_bytes >= 0:
        assert rank.short_bytes(bound) == 0
    assert rank.short_bytes(bound + 1) > 0
    assert found.fits == (bound >= 1)


@settings(deadline=None)
@given(MODELS, st.integers(0, 100 * GIB), st.integers(1, 10**6))
def test_capacity_agrees_with_concurrency(model: ModelStorage, budget: int, context: int) -> None:
    rank = fit_in_budget(model, budget_bytes=budget, context=context)
    assert rank.admission_bound * rank.block_positions <= rank.capacity_tokens
    assert rank.capacity_tokens < (rank.admission_bound + 1) * rank.block_positions


@settings(deadline=None)
@given(MODELS, st.sampled_from([1, 2, 4, 8]), st.integers(1, 5))
def test_replicas_multiply_the_whole_and_leave_one_as_it_is(
    model: ModelStorage, tp: int, dp: int
) -> None:
    one, many = planned(model, tp=tp), planned(model, tp=tp, dp=dp)
    assert many.ranks == one.ranks
    assert many.total_admission_bound == dp * one.total_admission_bound


@given(KV_HEADS, st.sampled_from([16, 32, 64]))
def test_query_heads_never_enter_the_cache(kv_heads: int, heads: int) -> None:
    model = uniform_model(num_layers=4, num_kv_heads=kv_heads, head_dim=64, num_heads=heads)
    same = uniform_model(num_layers=4, num_kv_heads=kv_heads, head_dim=64, num_heads=128)
    assert planned(model).request_bytes == planned(same).request_bytes


@pytest.mark.parametrize("name", ["gemma-3-27b", "gpt-oss-20b", "qwen3-next-80b", "jamba-v0.1"])
def test_models_with_several_kinds_of_layers_are_planned(name: str) -> None:
    found = plan(name, gpu="H200", gpus=2, context=32_768)
    assert found.admission_bound >= 1
    wider = Deployment.of(name).request(32_768)
    assert found.request_bytes == wider.request_bytes

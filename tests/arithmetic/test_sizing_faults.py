"""Faults that calculators really had, as tests of the planner; and every bad input by its name."""

import pytest

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.plan_ranks import fit_in_budget
from kvlab.arithmetic.sizing import plan
from kvlab.arithmetic.units import format_bytes
from kvlab.errors import InvalidArgument, KvlabError

GIB, GB = 2**30, 10**9
SMALL = {"gpu": "H100", "context": 8192}


def test_one_block_more_costs_one_sequence() -> None:
    at, over = (
        fit_in_budget("llama-3.1-70b", budget_bytes=20 * GIB, context=n) for n in (8192, 8193)
    )
    assert (at.admission_bound, over.admission_bound) == (8, 7)
    assert over.block_positions == 513 * 16


@pytest.mark.parametrize("context", [1, 15, 16, 17, 8192, 8193, 100_000])
def test_concurrency_times_length_agrees_with_the_tokens_shown(context: int) -> None:
    rank = fit_in_budget("llama-3.1-70b", budget_bytes=20 * GIB, context=context)
    blocks = -(-context // 16) * 16
    assert rank.admission_bound is not None and rank.capacity_tokens is not None
    assert rank.admission_bound * blocks <= rank.capacity_tokens
    assert rank.capacity_tokens < (rank.admission_bound + 1) * blocks


def test_replicas_never_shrink_one_request() -> None:
    found = [plan("llama-3.1-70b", tp=8, dp=n, **SMALL).tightest.bytes_per_token for n in (1, 2, 4)]
    assert found == [40_960] * 3


def test_the_reserve_is_taken_off_and_seen() -> None:
    found = plan("llama-3.1-70b", gpu_bytes=80 * GB, gpus=8, context=8192)
    assert found.tightest.budget_bytes / GB == pytest.approx(54.36, abs=0.01)
    assert any(note.startswith("overhead 0") and "upper bound" in note for note in found.notes)
    reserved = plan("llama-3.1-70b", gpu_bytes=80 * GB, gpus=8, context=8192, overhead_bytes=GB)
    assert found.tightest.budget_bytes - reserved.tightest.budget_bytes == GB
    assert not any("overhead 0" in note for note in reserved.notes)


def test_narrow_weights_leave_the_cache_as_it_is() -> None:
    wide = plan("llama-3.1-70b", gpus=8, **SMALL)
    narrow = plan("llama-3.1-70b", gpus=8, weights_dtype="int4", **SMALL)
    assert wide.request_bytes == narrow.request_bytes == 8192 * 327_680
    assert narrow.tightest.weight_bytes < wide.tightest.weight_bytes / 3


def test_memory_is_never_negative() -> None:
    found = plan("llama-3.1-70b", gpu="T4", context=8192)
    rank = found.tightest
    assert rank.budget_bytes == 0 and found.headroom_bytes == 0 and found.concurrency == 0.0
    assert found.admission_bound == 0 and found.capacity_tokens == 0
    missing = rank.weight_bytes - rank.usable_bytes
    assert f"does not fit by {format_bytes(missing)}" in found.verdict


def test_both_units_are_shown_with_their_right_names() -> None:
    found = plan("llama-3.1-70b", gpu="H100", context=131_072)
    assert format_bytes(found.request_bytes) == "40.00 GiB (42.95 GB)"


def test_huge_numbers_are_exact_and_instant() -> None:
    found = plan("llama-3.1-70b", gpu_bytes=10**18, gpus=8, context=10**12, utilization=1)
    assert found.request_bytes == 10**12 * 327_680
    assert found.tightest.budget_bytes == 10**18 - found.tightest.weight_bytes


BAD = [
    ("context", 0),
    ("context", -1),
    ("context", 8192.5),
    ("context", "8k"),
    ("context", float("nan")),
    ("context", None),
    ("output", -1),
    ("users", 0),
    ("gpus", 0),
    ("tp", 3),
    ("tp", -8),
    ("pp", 81),
    ("dp", 0),
    ("gpu", "H1000"),
    ("gpu_bytes", -1),
    ("utilization", 0),
    ("utilization", 90),
    ("utilization", float("nan")),
    ("utilization", "0.9"),
    ("overhead_bytes", -1),
    ("overhead_bytes", 1.5),
    ("block_size", 0),
    ("cache_dtype", "int3"),
    ("weights_dtype", "int3"),
    ("ttft_target", 0),
    ("tpot_target", float("inf")),
    ("parameters", 0),
    ("source_length", -1),
]


@pytest.mark.parametrize(("argument", "value"), BAD)
def test_bad_input_is_named(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        plan("llama-3.1-70b", **{**SMALL, argument: value})
    assert caught.value.argument == argument


def test_gpus_must_be_shared_out_without_rest() -> None:
    with pytest.raises(InvalidArgument, match="gpus=6: must be a multiple of tp x pp x dp"):
        plan("llama-3.1-70b", gpus=6, tp=4, **SMALL)
    with pytest.raises(InvalidArgument, match="gpus=6: must equal"):
        plan("llama-3.1-70b", gpus=6, tp=2, dp=1, **SMALL)


def test_a_plan_needs_a_gpu() -> None:
    with pytest.raises(InvalidArgument, match="gpu=None"):
        plan("llama-3.1-70b", context=8192)


def test_weights_that_no_config_tells_must_be_given() -> None:
    config = {**find_model("mixtral-8x7b").config, "num_local_experts": 9}
    with pytest.raises(InvalidArgument, match="parameters=None: must be given"):
        plan(config, **SMALL)
    assert plan(config, parameters=52 * 10**9, **SMALL).inputs.deployment.weights.body > 0


def test_a_missing_field_is_named() -> None:
    config = dict(find_model("llama-3.1-8b").config)
    del config["intermediate_size"]
    with pytest.raises(InvalidArgument, match="intermediate_size"):
        plan(config, **SMALL)


@pytest.mark.parametrize("config", [[], 7, None])
def test_a_config_that_is_no_object_is_refused(config: object) -> None:
    with pytest.raises(KvlabError):
        plan(config, **SMALL)  # type: ignore[arg-type]

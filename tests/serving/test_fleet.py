"""A planned deployment under load: its pool, its replicas, and the report."""

import pytest

from kvlab.arithmetic.sizing import plan
from kvlab.errors import InvalidArgument
from kvlab.serving.fleet import plan_fleet, simulate_fleet
from kvlab.serving.limits import Limits
from kvlab.serving.report import serving_report
from kvlab.serving.simulator import simulate
from kvlab.serving.workload import Workload

WORK = Workload.of(
    requests=120, rate=30, prompt_tokens="lognormal:300:0.8", output_tokens="uniform:5:60", seed=2
)


def test_the_pool_is_what_the_planner_leaves() -> None:
    fleet = plan_fleet("llama-3.1-8b", gpu="H100", typical_tokens=500, block_size=32)
    made = plan("llama-3.1-8b", context=500, gpu="H100", block_size=32)
    assert fleet.num_blocks == made.tightest.budget_bytes // (32 * 131_072)
    assert f"{fleet.num_blocks:,} blocks of 32 tokens" in fleet.pool_said
    assert "leave 56.73 GiB" in fleet.pool_said


def test_four_gpus_at_tp_two_are_two_servers_that_share_nothing() -> None:
    fleet = plan_fleet("llama-3.1-8b", gpu="A100 80GB", typical_tokens=330, gpus=4, tp=2)
    served = simulate_fleet(fleet, WORK)
    assert fleet.replicas == len(served.loops) == 2
    report = serving_report(served)
    assert report["requests_finished"] == 120
    assert report["tokens_generated"] == sum(request.max_new_tokens for request in WORK)
    even = simulate(
        [request for request in WORK if request.request_id % 2 == 0],
        fleet.clock(),
        num_blocks=fleet.num_blocks,
        limits=Limits(max_seq_len=fleet.max_seq_len),
    )
    assert even.now == served.loops[0].now
    assert report["makespan_seconds"] == max(loop.metrics.makespan for loop in served.loops)
    with pytest.raises(InvalidArgument, match="several replicas"):
        simulate_fleet(fleet, iter(WORK))


def test_requests_longer_than_the_model_are_refused_and_named() -> None:
    fleet = plan_fleet("smollm2-135m", gpu="T4", typical_tokens=500)
    long = Workload.of(requests=4, rate=1, prompt_tokens=9000, output_tokens=5)
    report = serving_report(simulate_fleet(fleet, long))
    assert (report["requests_rejected"], report["requests_finished"]) == (4, 0)
    assert report["errors"][0] == "request 0: needs 9,004 positions, has 8,192"
    assert report["ttft_seconds"] == {"p50": None, "p95": None, "p99": None}


def test_a_model_without_a_pool_is_named() -> None:
    with pytest.raises(InvalidArgument, match="no block is left for caches: does not fit"):
        plan_fleet("llama-3.1-405b", gpu="H100", typical_tokens=500)

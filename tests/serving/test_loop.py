"""Time in the loop: arrivals, patience, measured times, and a stall that is said."""

import tracemalloc

import pytest

from kvlab.errors import InvalidArgument
from kvlab.serving.limits import Limits
from kvlab.serving.loop import Stalled
from kvlab.serving.quantiles import Quantiles
from kvlab.serving.request import Request
from kvlab.serving.simulator import make_loop, simulate
from kvlab.serving.timeline import Timeline
from kvlab.serving.workload import Workload


def test_the_clock_jumps_to_the_next_arrival(clock) -> None:
    loop = simulate(
        [Request(0, 5, 1), Request(1, 5, 1, arrival_seconds=100.0)], clock, num_blocks=9
    )
    assert 100 < loop.now < 100.1
    assert loop.metrics.busy_seconds < 0.1
    assert loop.metrics.ttft.percentile(99) < 0.1


def test_times_are_those_of_the_steps(clock) -> None:
    loop = make_loop([Request(0, 64, 3, arrival_seconds=1.0)], clock, num_blocks=9, skips=False)
    ends = []
    while loop.step() is not None:
        ends.append(loop.now)
    metrics = loop.metrics
    assert len(ends) == 3
    assert metrics.ttft.percentile(50) == ends[0] - 1.0
    assert metrics.tpot.percentile(50) == (ends[2] - ends[0]) / 2
    assert metrics.queue_time.percentile(50) == 0.0
    assert metrics.makespan == ends[2]


def test_whoever_waits_too_long_gives_up(clock) -> None:
    patient = Request(0, 100, 500)
    hasty = Request(1, 100, 500, timeout_seconds=0.5)
    loop = simulate([patient, hasty], clock, num_blocks=200)
    assert loop.metrics.requests == {"finished": 1, "aborted": 1}
    assert loop.metrics.errors == ["request 1: aborted"]
    assert loop.scheduler.counts.generation_tokens < 1000


def test_a_full_queue_turns_requests_away_and_the_rest_finish(clock) -> None:
    requests = [Request(i, 160, 10) for i in range(30)]
    limits = Limits(max_running=2, max_waiting=10)
    loop = simulate(requests, clock, num_blocks=1000, limits=limits)
    assert loop.metrics.requests == {"finished": 10, "refused": 20}
    assert loop.metrics.errors[0] == "request 10: the queue is full: 10 wait already"


def test_a_request_with_one_failed_sample_did_not_finish(clock) -> None:
    loop = simulate([Request(0, 16, 40, num_samples=2)], clock, num_blocks=3)
    assert loop.metrics.requests == {"outgrown": 1}
    reasons = loop.metrics.errors
    assert reasons and all("outgrew the pool" in reason for reason in reasons)


def test_vllm_names_carry_the_numbers(clock) -> None:
    loop = simulate([Request(i, 100, 10) for i in range(5)], clock, num_blocks=20)
    told = loop.metrics.as_vllm(loop.scheduler)
    assert told["vllm:generation_tokens_total"] == 50
    assert told["vllm:prompt_tokens_total"] == 500
    assert told["vllm:request_success_total"] == 5
    assert told["vllm:num_requests_running"] == told["vllm:num_requests_waiting"] == 0
    assert told["vllm:kv_cache_usage_perc"] == 0.0
    assert told["vllm:num_preemptions_total"] == loop.scheduler.counts.preemptions
    assert told["vllm:time_to_first_token_seconds_count"] == 5
    assert told["vllm:time_to_first_token_seconds_sum"] > 0


def test_a_fault_in_the_scheduler_is_said_instead_of_looping(clock, monkeypatch) -> None:
    loop = make_loop([Request(0, 5, 5)], clock, num_blocks=9)
    monkeypatch.setattr(loop.scheduler.memory, "admit", lambda *_: None)
    with pytest.raises(Stalled, match="step 1: 0 run and 1 wait, and none got work"):
        loop.run()


def test_arrivals_out_of_order_are_named(clock) -> None:
    requests = [Request(0, 5, 5, arrival_seconds=2.0), Request(1, 5, 5, arrival_seconds=1.0)]
    with pytest.raises(InvalidArgument, match=r"arrival_seconds=1\.0: requests must come"):
        simulate(requests, clock, num_blocks=9)


@pytest.mark.parametrize("n", [1, 2, 3, 99, 100, 101])
def test_a_percentile_is_the_smallest_number_that_enough_do_not_exceed(n: int) -> None:
    numbers = Quantiles(float(i) for i in range(n, 0, -1))
    for p in (1, 50, 95, 99, 100):
        found = numbers.percentile(p)
        assert sum(i <= found for i in range(1, n + 1)) >= p * n / 100
        assert sum(i < found for i in range(1, n + 1)) < p * n / 100


def test_no_numbers_have_no_percentile() -> None:
    assert Quantiles().summary() == {"p50": None, "p95": None, "p99": None}
    with pytest.raises(InvalidArgument, match="p=0"):
        Quantiles([1.0]).percentile(0)


def test_a_timeline_stays_short_and_ends_where_the_run_ends(clock) -> None:
    timeline = Timeline(max_points=50)
    requests = [Request(i, 50, 30, arrival_seconds=i / 20) for i in range(200)]
    loop = simulate(requests, clock, num_blocks=10, on_step=timeline)
    points = timeline.points
    assert 20 <= len(points) <= 50
    assert points == sorted(points, key=lambda point: point.seconds)
    assert loop.now - points[-1].seconds <= timeline.every
    assert max(point.block_use for point in points) <= 1.0
    assert max(point.waiting for point in points) > 0


def test_memory_does_not_grow_with_the_requests_that_have_ended(clock) -> None:
    def peak(count: int) -> int:
        work = Workload.of(requests=count, rate=50, prompt_tokens=150, output_tokens=5)
        tracemalloc.start()
        simulate(work, clock, num_blocks=400)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)  # whatever is made once
    assert peak(2000) - peak(500) < 1500 * 64  # three numbers of 8 bytes each, and spare room

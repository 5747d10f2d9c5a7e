"""Steps taken together give the schedule that steps taken one by one give, to the last event."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.paging.rules import broken_rules
from kvlab.serving.events import Event
from kvlab.serving.limits import Limits
from kvlab.serving.loop import ServingLoop
from kvlab.serving.request import Request
from kvlab.serving.simulator import make_loop
from kvlab.serving.step_clock import StepClock
from kvlab.serving.workloads import OWN_IDS

CLOCK = StepClock(
    Deployment.of("llama-3.1-8b"), Device.of("H100"), block_size=4, host_bytes_per_second=64e9
)


def served(requests: list[Request], skips: bool, **options: Any) -> tuple[ServingLoop, list[Event]]:
    """Serve requests; return the loop and all that was said."""
    said: list[Event] = []
    loop = make_loop(requests, CLOCK, observer=said.append, skips=skips, **options)
    loop.run()
    assert broken_rules(loop.scheduler.manager) == []
    return loop, said


def told(loop: ServingLoop) -> tuple[Any, ...]:
    """Return everything that must not depend on how steps are taken."""
    metrics = loop.metrics
    times = [list(q._values) for q in (metrics.ttft, metrics.tpot, metrics.queue_time)]
    peaks = loop.scheduler.manager.pool.peak_used, metrics.peak_running, metrics.peak_waiting
    return loop.now, loop.scheduler.counts, metrics.requests, metrics.makespan, times, peaks


@st.composite
def workloads(draw: st.DrawFn) -> list[Request]:
    """Draw a few requests: some with ids that begin alike, samples, timeouts, priorities."""
    now, requests = 0.0, []
    for number in range(draw(st.integers(1, 12))):
        now += draw(st.sampled_from([0.0, 0.001, 0.02, 0.3]))
        length, shared = draw(st.integers(1, 30)), draw(st.sampled_from([0, 8, 30]))
        own = (number + 1) * OWN_IDS
        ids = [*range(min(shared, length)), *range(own, own + length - min(shared, length))]
        requests.append(
            Request(
                number,
                length,
                draw(st.integers(1, 40)),
                arrival_seconds=now,
                prompt_ids=ids if shared else None,
                priority=draw(st.integers(0, 2)),
                num_samples=draw(st.sampled_from([1, 1, 3])),
                output_tokens=draw(st.one_of(st.none(), st.integers(1, 40))),
                timeout_seconds=draw(st.sampled_from([None, None, 0.05])),
            )
        )
    return requests


@settings(max_examples=120, deadline=None)
@given(
    requests=workloads(),
    num_blocks=st.integers(6, 60),
    limits=st.builds(
        Limits,
        max_batched_tokens=st.sampled_from([8, 17, 500]),
        max_running=st.sampled_from([3, 8]),
        max_waiting=st.sampled_from([None, 5]),
        reserve_output=st.booleans(),
        policy=st.sampled_from(["fcfs", "priority"]),
        preemption=st.sampled_from(["recompute", "swap"]),
        host_blocks=st.sampled_from([None, 4]),
        chunked_prefill=st.booleans(),
    ),
    caching=st.booleans(),
)
def test_skipping_quiet_steps_changes_nothing(
    requests: list[Request], num_blocks: int, limits: Limits, caching: bool
) -> None:
    options = {"num_blocks": num_blocks, "limits": limits, "prefix_caching": caching}
    slow, said = served(requests, skips=False, **options)
    quick, said_quickly = served(requests, skips=True, **options)
    assert said == said_quickly
    assert told(slow) == told(quick)
    assert slow.metrics.busy_seconds == pytest.approx(quick.metrics.busy_seconds)
    assert sum(slow.metrics.requests.values()) == len(requests)  # each one ended, and is counted
    manager = slow.scheduler.manager
    assert manager.num_free == manager.num_blocks and slow.scheduler.memory.host.num_used == 0
    assert slow.scheduler.live == {}
    if limits.reserve_output:
        assert slow.scheduler.counts.preemptions == 0


def test_a_long_answer_alone_takes_few_turns_of_the_loop() -> None:
    turns = []
    loop = make_loop([Request(0, 10, 5000)], CLOCK, num_blocks=2000, on_step=turns.append)
    loop.run()
    assert loop.scheduler.counts.steps == 5000 and len(turns) == 2

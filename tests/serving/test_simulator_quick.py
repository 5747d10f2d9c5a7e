"""The quick simulation gives the looks and the sums of the scheduler, to the last bit."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.serving.limits import Limits
from kvlab.serving.plan import StepLoad
from kvlab.serving.simulator_price import LinePrice
from kvlab.serving.simulator_quick import quick_run
from kvlab.serving.simulator_traffic import Traffic, scheduled_run
from kvlab.serving.step_clock import StepClock
from kvlab.serving.workloads import make_requests, poisson_arrivals
from kvlab.widgets.serving_run import REQUESTS, STATED, answers, arrivals, fleet, prompts

LLAMA = Deployment.of("llama-3.1-8b")
CLOCK = StepClock(LLAMA, Device.of("H100"), block_size=4, host_bytes_per_second=64e9)
SLOW = Device("a slow card", flops_per_second=2e12, bytes_per_second=4e12)


@st.composite
def traffic(draw: st.DrawFn) -> Traffic:
    """Draw a few requests, some at the same time, some with an answer of one token."""
    now, rows = 0.0, []
    for _ in range(draw(st.integers(1, 14))):
        now += draw(st.sampled_from([0.0, 0.001, 0.02, 0.3]))
        stated = draw(st.integers(1, 40))
        rows.append((now, draw(st.integers(1, 40)), draw(st.integers(1, stated)), stated))
    return Traffic(*(list(column) for column in zip(*rows, strict=True)))


@settings(max_examples=250, deadline=None)
@given(
    requests=traffic(),
    num_blocks=st.integers(5, 60),
    limits=st.builds(
        Limits,
        max_batched_tokens=st.sampled_from([8, 17, 500]),
        max_running=st.sampled_from([3, 8]),
        reserve_output=st.booleans(),
        preemption=st.sampled_from(["recompute", "swap"]),
    ),
    max_looks=st.sampled_from([8, 1000]),
)
def test_few_requests_on_a_small_pool_are_served_alike(
    requests: Traffic, num_blocks: int, limits: Limits, max_looks: int
) -> None:
    options: dict[str, Any] = {"num_blocks": num_blocks, "limits": limits, "max_looks": max_looks}
    quick = quick_run(requests, CLOCK, **options)
    assert quick is None or quick == scheduled_run(requests, CLOCK, **options)


@pytest.mark.parametrize(
    ("rate", "mean", "num_blocks", "preemption", "reserve"),
    [
        (16, 1024, 2048, "recompute", False),
        (64, 128, 256, "recompute", False),
        (64, 1024, 512, "swap", False),
        (1, 8192, 512, "recompute", True),
        (2, 8192, 512, "swap", False),
    ],
)
def test_the_runs_of_the_serving_explorer_are_those_of_the_scheduler(
    rate: int, mean: int, num_blocks: int, preemption: str, reserve: bool
) -> None:
    requests = Traffic(arrivals(rate), prompts(mean), answers(), (STATED,) * REQUESTS)
    clock = fleet().clock(swaps=preemption == "swap")
    limits = Limits(preemption=preemption, reserve_output=reserve)
    options: dict[str, Any] = {"num_blocks": num_blocks, "limits": limits, "max_looks": 240}
    assert quick_run(requests, clock, **options) == scheduled_run(requests, clock, **options)


def test_the_lengths_of_the_serving_explorer_are_those_that_make_requests_draws() -> None:
    made = make_requests(
        REQUESTS, prompt_tokens="lognormal:512:0.5", output_tokens="uniform:50:350",
        max_new_tokens=STATED, arrivals=poisson_arrivals(8, seed=10), seed=10,
    )  # fmt: skip
    columns = Traffic(arrivals(8), prompts(512), answers(), (STATED,) * REQUESTS)
    assert list(columns.requests()) == list(made)


@pytest.mark.parametrize("device", [Device.of("H100"), SLOW])
@pytest.mark.parametrize("until", [float("inf"), 0.3, 0.0])
def test_many_decodes_take_the_time_of_one_after_the_other(device: Device, until: float) -> None:
    clock = StepClock(LLAMA, device)
    now, taken, load = 0.1, 0, StepLoad(7, 7, 7, 4000, 4000)
    while taken < 50 and now < until:
        now, taken = now + clock.seconds(load), taken + 1
        load.next_decode()
    assert LinePrice(clock).decodes(7, 4000, 0.1, 50, until) == (taken, now)


def test_what_needs_the_scheduler_itself_is_left_to_it() -> None:
    requests = Traffic([0.0], [9], [5], [5])
    options: dict[str, Any] = {"num_blocks": 9, "max_looks": 9}
    for limits in (Limits(policy="priority"), Limits(max_waiting=1), Limits(host_blocks=1)):
        assert quick_run(requests, CLOCK, limits=limits, **options) is None

"""The price of setting a request aside: swap, recompute or wait."""

import pytest

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.preemption import host_bytes_per_second, preemption_cost
from kvlab.arithmetic.roofline import Device, time_decode, time_prefill
from kvlab.errors import InvalidArgument

EIGHT = Deployment.of("llama-3.1-70b", tp=8)
FULL = 131_072


def test_a_swap_goes_out_and_back_on_the_link_of_each_rank() -> None:
    one = preemption_cost(Deployment.of("llama-3.1-70b"), tokens=FULL, gpu="H100")
    eight = preemption_cost(EIGHT, tokens=FULL, gpu="H100")
    assert one.swap_seconds == pytest.approx(2 * 0.67108864)
    assert eight.swap_seconds == pytest.approx(one.swap_seconds / 8)
    assert eight.swapped_bytes == one.swapped_bytes == 42_949_672_960


def test_copied_heads_are_swapped_by_every_rank() -> None:
    sixteen = preemption_cost(Deployment.of("llama-3.1-70b", tp=16), tokens=FULL, gpu="H100")
    eight = preemption_cost(EIGHT, tokens=FULL, gpu="H100")
    assert sixteen.swapped_bytes == 2 * eight.swapped_bytes
    assert sixteen.swap_seconds == eight.swap_seconds


def test_recomputing_is_a_prefill_of_all_tokens_held() -> None:
    cost = preemption_cost(EIGHT, tokens=9000, gpu="H100")
    again = time_prefill(EIGHT, Device.of("H100"), prompt_tokens=9000)
    assert cost.recompute_seconds == again.seconds
    assert cost.wait_seconds is None


def test_waiting_lasts_as_long_as_the_tokens_that_another_still_emits() -> None:
    cost = preemption_cost(EIGHT, tokens=9000, gpu="H100", remaining_tokens=10, batch=4)
    step = time_decode(EIGHT, Device.of("H100"), context=9000, batch=4)
    assert cost.wait_seconds == pytest.approx(10 * step.seconds)


def test_the_cheapest_way_depends_on_length_and_link() -> None:
    small = Deployment.of("smollm2")
    slow = {"device": Device("here", 1e15, 1e12), "host_bytes_per_second": 1e9}
    assert preemption_cost(small, tokens=64, **slow).cheapest == "recompute"
    assert preemption_cost(EIGHT, tokens=FULL, gpu="H100").cheapest == "swap"
    assert preemption_cost(EIGHT, tokens=FULL, gpu="H100", remaining_tokens=1).cheapest == "wait"


def test_reading_hbm_is_52_times_quicker_than_the_host_link() -> None:
    ratio = Device.of("H100").bytes_per_second / host_bytes_per_second("H100")
    assert ratio == pytest.approx(52.3, abs=0.1)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("tokens", {"tokens": 0, "gpu": "H100"}),
        ("gpu", {"tokens": 1}),
        ("gpu", {"tokens": 1, "gpu": "GB200"}),
        ("host_bytes_per_second", {"tokens": 1, "device": Device("here", 1e12, 1e11)}),
        ("host_bytes_per_second", {"tokens": 1, "gpu": "H100", "host_bytes_per_second": 0}),
        ("remaining_tokens", {"tokens": 1, "gpu": "H100", "remaining_tokens": -1}),
    ],
)
def test_bad_input_is_named(argument: str, given: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        preemption_cost(EIGHT, **given)  # type: ignore[arg-type]
    assert caught.value.argument == argument

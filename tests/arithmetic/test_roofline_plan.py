"""What binds a plan: memory, bandwidth or compute, against targets in seconds."""

import pytest

from kvlab.arithmetic.plan_timing import time_plan, what_binds
from kvlab.arithmetic.roofline import Device, time_decode
from kvlab.arithmetic.sizing import plan
from kvlab.errors import InvalidArgument

BOX = {"gpu": "H100", "gpus": 8, "context": 32_768}


def test_a_request_may_fit_and_still_be_late() -> None:
    found = plan("llama-3.1-70b", tpot_target=0.015, **BOX)
    binding = what_binds(found)
    assert binding.limit == "bandwidth"
    assert binding.requests == binding.by_tpot < binding.by_capacity == found.admission_bound


def test_the_largest_batch_in_time_meets_the_target_and_the_next_does_not() -> None:
    found = plan("llama-3.1-70b", tpot_target=0.015, **BOX)
    batch = what_binds(found).by_tpot
    device, model = Device.of("H100"), found.inputs.deployment
    assert time_decode(model, device, context=32_768, batch=batch).seconds <= 0.015
    assert time_decode(model, device, context=32_768, batch=batch + 1).seconds > 0.015


def test_a_prompt_alone_may_miss_its_first_token() -> None:
    binding = what_binds(plan("llama-3.1-70b", ttft_target=0.1, **BOX))
    assert binding.limit == "compute" and binding.requests == 0 and binding.meets_ttft is False


def test_without_targets_capacity_binds() -> None:
    binding = what_binds(plan("llama-3.1-70b", **BOX))
    assert binding.limit == "capacity" and binding.by_tpot is None


def test_nothing_binds_when_the_users_fit_and_are_in_time() -> None:
    found = plan("llama-3.1-70b", users=4, ttft_target=10, tpot_target=1, **BOX)
    assert what_binds(found).limit == "nothing"


def test_weights_bind_when_they_do_not_fit() -> None:
    found = plan("llama-3.1-70b", gpu="T4", context=1024)
    assert what_binds(found).limit == "weights"
    assert time_plan(found) is None


def test_a_measured_device_stands_in_for_a_gpu() -> None:
    found = plan("smollm2", gpu_bytes=2**33, context=2048, tpot_target=0.5)
    here = Device("here", flops_per_second=100e9, bytes_per_second=20e9)
    assert what_binds(found, here).by_tpot > 0
    assert time_plan(found, here) is not None and time_plan(found) is None
    with pytest.raises(InvalidArgument, match="gpu=None"):
        what_binds(found)


def test_each_target_that_is_missed_is_said() -> None:
    slow = {"gpu": "A100", "context": 32_768, "users": 10, "ttft_target": 0.5}
    said = what_binds(plan("qwen3-4b", **slow, tpot_target=0.02)).says
    assert "misses the TTFT target" in said and "only 6 meet the TPOT target" in said
    assert "TPOT" not in what_binds(plan("qwen3-4b", **slow, tpot_target=1.0)).says

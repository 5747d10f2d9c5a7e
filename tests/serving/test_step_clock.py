"""The price of a step is the roofline's, for whole batches, chunks, and models with windows."""

import pytest

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device, time_decode, time_prefill
from kvlab.serving.plan import StepLoad, triangle
from kvlab.serving.step_clock import StepClock

H100 = Device.of("H100")
MODELS = [("llama-3.1-8b", 1), ("llama-3.1-70b", 8), ("deepseek-v3", 8), ("gemma-2-2b", 1)]


def decodes(batch: int, context: int) -> StepLoad:
    """Return the load of a step of equal decodes."""
    spans = [(context - 1, context)] * batch
    total = batch * context
    return StepLoad(batch, batch, batch, total, total, spans=spans)


@pytest.mark.parametrize(("model", "tp"), MODELS)
@pytest.mark.parametrize(("batch", "context"), [(1, 1), (7, 500), (64, 9000)])
def test_a_decode_step_takes_what_the_roofline_says(model, tp, batch, context) -> None:
    deployment = Deployment.of(model, tp=tp)
    expected = time_decode(deployment, H100, context=context, batch=batch).seconds
    assert StepClock(deployment, H100).seconds(decodes(batch, context)) == expected


@pytest.mark.parametrize(("model", "tp"), MODELS)
def test_a_whole_prompt_takes_what_the_roofline_says(model, tp) -> None:
    deployment = Deployment.of(model, tp=tp)
    load = StepLoad(1, 6000, 1, triangle(6000), 6000, spans=[(0, 6000)])
    expected = time_prefill(deployment, H100, prompt_tokens=6000).seconds
    assert StepClock(deployment, H100).seconds(load) == expected


def test_only_a_model_with_windows_needs_the_spans() -> None:
    needs = {name: StepClock(Deployment.of(name), H100).needs_spans for name, _ in MODELS}
    assert needs == {name: name == "gemma-2-2b" for name, _ in MODELS}


def test_swapped_blocks_cross_the_link_before_the_step() -> None:
    deployment = Deployment.of("llama-3.1-8b")
    clock = StepClock(deployment, H100, block_size=16, host_bytes_per_second=64e9)
    load = decodes(4, 100)
    alone = clock.seconds(load)
    load.moved_blocks = 10
    assert clock.seconds(load) - alone == pytest.approx(10 * 16 * 131_072 / 64e9)
    assert StepClock(deployment, H100).move_seconds(10) == 0.0  # a device without a host


def test_two_stages_are_passed_one_after_the_other() -> None:
    two = StepClock(Deployment.of("llama-3.1-70b", pp=2), H100)
    one = StepClock(Deployment.of("llama-3.1-70b"), H100)
    load = decodes(8, 1000)
    assert two.seconds(load) == pytest.approx(one.seconds(load), rel=0.01)

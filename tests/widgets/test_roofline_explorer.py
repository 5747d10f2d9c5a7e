"""The roofline explorer says what the arithmetic says."""

import pytest

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device, crossover_batch, time_decode, time_prefill
from kvlab.errors import InvalidArgument
from kvlab.widgets.roofline_explorer import (
    THIS_MACHINE,
    device_choices,
    model_choices,
    roofline_explorer,
    roofline_frame,
)

HERE = (Device("cpu (mine)", 33e9, 14.5e9), "fp32")


def test_the_numbers_are_those_of_the_arithmetic() -> None:
    numbers = roofline_explorer().numbers
    one, card = Deployment.of("llama-3.1-8b"), Device.of("H100")
    first = time_prefill(one, card, prompt_tokens=8192)
    step = time_decode(one, card, context=8192, batch=16)
    assert numbers["TTFT, prompt alone"] == f"{1000 * first.seconds:.2f} ms"
    assert numbers["TPOT, whole batch"] == f"{1000 * step.seconds:.2f} ms"
    assert numbers["throughput"] == f"{step.tokens_per_second:,.0f} tokens/s"
    assert (numbers["prefill waits for"], numbers["decode waits for"]) == ("arithmetic", "memory")
    assert numbers["cache moved a step"].startswith("16.00 GiB")


@pytest.mark.parametrize("context", [128, 1024, 8192])
def test_where_the_cache_overtakes_is_the_closed_form(context: int) -> None:
    one = Deployment.of("llama-3.1-8b")
    sizes = {"weight_bytes": sum(one.weight_bytes), "bytes_per_token": 131_072}
    expected = crossover_batch(**sizes, context=context)
    said = roofline_frame("llama-3.1-8b", "H100 SXM5", context, 1).readout
    assert said["cache overtakes weights at"] == f"{expected:,} requests of {context:,}"


def test_batching_climbs_until_the_caches_are_most_of_it() -> None:
    show = roofline_explorer(batch=1)

    def rate() -> float:
        return float(show.numbers["throughput"].split()[0].replace(",", ""))

    rates = []
    for batch in (1, 2, 512, 1024):
        show.controls["batch"].value = batch
        rates.append(rate())
    assert rates[1] / rates[0] > 1.8
    assert rates[3] / rates[2] < 1.05


def test_the_readout_says_where_the_disc_stops() -> None:
    one = Deployment.of("llama-3.1-8b")
    for context in (1024, 8192):
        said = roofline_frame("llama-3.1-8b", "H100", context, 1).readout
        near = float(said["decode stops climbing near"].split()[0])
        (work,) = time_decode(one, Device.of("H100"), context=context, batch=2**20).stages
        assert near == pytest.approx(work.intensity, rel=0.01)
    assert near < Device.of("H100").ridge


@pytest.mark.parametrize("model", [model for _, model in model_choices()])
def test_every_model_works_at_both_ends_of_the_sliders(model: str) -> None:
    show = roofline_explorer(model)
    for context, batch in ((1, 1), (2**17, 2**10)):
        show.set(context=context, batch=batch)
        assert show.error.value == ""
        assert show.picture.value.count("<svg") == 1


@pytest.mark.parametrize("device", device_choices())
def test_every_device_works(device: str) -> None:
    show = roofline_explorer(measured=HERE)
    show.controls["device"].value = device
    assert show.error.value == ""
    assert Device.of(device).name in show.picture.value if device != THIS_MACHINE else True


def test_this_machine_is_offered_only_when_it_was_measured() -> None:
    assert THIS_MACHINE not in roofline_explorer().controls["device"].options
    show = roofline_explorer(device=THIS_MACHINE, measured=HERE)
    assert "fp32, on cpu (mine)" in show.frame.event
    assert "weights and cache" not in show.numbers
    with pytest.raises(InvalidArgument, match="measure_device"):
        roofline_frame("llama-3.1-8b", THIS_MACHINE, 1024, 1)


def test_what_does_not_fit_says_so_and_home_leads_back() -> None:
    show = roofline_explorer("meta-llama/Llama-3.1-70B")
    assert "does not fit" in show.numbers["weights and cache"]
    show.set(batch=1)
    show.reset()
    assert show.values["batch"] == 16

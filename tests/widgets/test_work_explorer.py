"""The work explorer says what the arithmetic says, for every model of the catalogue."""

import pytest

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flops import flops_cached, flops_uncached, token_forwards_uncached
from kvlab.widgets.work_explorer import model_choices, work_explorer, work_frame


def test_the_numbers_are_those_of_the_arithmetic():
    show = work_explorer("meta-llama/Llama-3.1-8B", prompt_tokens=64, new_tokens=32)
    shape = model_shape("llama-3.1-8b")
    ratio = flops_uncached(shape, 64, 32).total / flops_cached(shape, 64, 32).total
    assert show.numbers["FLOP ratio"] == f"{ratio:,.1f}x"
    assert show.numbers["token-forwards, cached"] == "95"
    assert show.numbers["token-forwards, uncached"] == f"{token_forwards_uncached(64, 32):,}"


@pytest.mark.parametrize("model", [model for _, model in model_choices()])
def test_every_model_and_both_ends_of_the_sliders_work(model):
    show = work_explorer(model)
    for tokens in (1, 2**17):
        show.set(prompt_tokens=tokens, new_tokens=tokens)
        assert show.error.value == ""
        assert show.picture.value.count("<svg") == 1


def test_the_published_ratios_come_out():
    assert work_frame("llama-3.1-70b", 2000, 1000).readout["FLOP ratio"] == "825.7x"
    assert work_frame("llama-3.1-8b", 2000, 1000).readout["FLOP ratio"] == "807.4x"


def test_where_attention_passes_the_rest_is_marked_only_when_it_comes():
    far = work_frame("llama-3.1-70b", 2048, 1024)
    assert "attention passes the rest" in far.picture
    past = work_frame("llama-3.1-70b", 2**17, 1024)
    assert "attention passes the rest" not in past.picture

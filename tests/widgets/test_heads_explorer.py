"""The two explorers of shared heads, driven without a browser."""

import pytest

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.head_sharing import KINDS, ORDERS, kv_head_choices
from kvlab.widgets.catalogue_explorer import ALL, ROWS, catalogue_explorer, catalogue_frame
from kvlab.widgets.heads_explorer import (
    MODELS,
    heads_explorer,
    own_kv_heads,
    query_heads,
    twin,
)


def test_the_slider_goes_from_a_head_each_to_one_for_all() -> None:
    show = heads_explorer()
    seen = []
    for heads in kv_head_choices(64):
        show.controls["num_kv_heads"].value = heads
        seen.append((show.numbers["kind"], show.numbers["a token"].split(" (")[0]))
    kinds = [kind for kind, _ in seen]
    assert kinds == ["MHA", "GQA", "GQA", "GQA", "GQA", "GQA", "MQA"]
    assert seen[0][1] == "2.50 MiB" and seen[3][1] == "320.00 KiB" and seen[-1][1] == "40.00 KiB"


def test_parameters_shrink_with_the_heads() -> None:
    show = heads_explorer()
    assert show.numbers["parameters"] == f"{find_model('llama-3.1-70b').parameters:,}"
    assert show.numbers["fewer than with MHA"] == "9,395,240,960"
    show.controls["model"].value = "llama-3.1-8b"
    assert show.numbers["fewer than with MHA"] == "805,306,368"
    show.controls["num_kv_heads"].value = 32
    assert show.numbers["fewer than with MHA"] == "0"


def test_below_eight_heads_a_gpu_of_eight_gains_nothing_more() -> None:
    show, name = heads_explorer(), "a token on each of 8 GPUs"
    values = {}
    for heads in (64, 8, 1):
        show.controls["num_kv_heads"].value = heads
        values[heads] = show.numbers[name]
    assert values[8] == values[1] != values[64]
    show.controls["model"].value = "smollm2"  # eight does not divide nine query heads
    assert name not in show.numbers


@pytest.mark.parametrize("model", MODELS)
def test_a_model_brings_its_own_heads_and_home_leads_back(model: str) -> None:
    show = heads_explorer()
    show.controls["model"].value = model
    assert show.values["num_kv_heads"] == own_kv_heads(model)
    assert show.error.value == "" and ", changed" not in show.picture.value
    show.controls["num_kv_heads"].value = 1
    assert ", changed" in show.picture.value
    show.reset()
    assert show.values == {"model": "llama-3.1-70b", "num_kv_heads": 8, "context": 8192}


def test_a_model_and_its_heads_can_be_set_together() -> None:
    show = heads_explorer()
    show.set(num_kv_heads=32, model="llama-3.1-8b", context=1024)
    assert show.numbers["kind"] == "MHA"
    assert show.numbers["1,024 tokens"].startswith("512.00 MiB")


def test_a_twin_without_a_change_is_the_model_of_the_catalogue() -> None:
    for model in MODELS:
        stores, weights = twin(model, own_kv_heads(model))
        assert weights == find_model(model).parameters
        assert stores.num_heads == query_heads(model)


def test_the_picture_is_updated_in_place_and_its_still_carries_the_numbers() -> None:
    show = heads_explorer()
    before = show.picture.value
    show.controls["num_kv_heads"].value = 1
    assert show.picture.value != before
    assert "64 query heads read 1 KV head, all 64." in show.still().label
    assert "fewer than with MHA" in show.still()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [ALL, *KINDS])
def test_every_order_of_every_kind_is_drawn(order: str, kind: str) -> None:
    for largest in (True, False):
        frame = catalogue_frame(order, largest, kind, 1, "nobody")
        assert frame.picture.count('text-anchor="end"') <= ROWS + 1
        assert order in frame.picture


def test_a_marked_model_stays_on_the_page_with_its_place_and_source() -> None:
    show = catalogue_explorer(mark="tiiuae/falcon-40b")
    for first in (1, 50, 100):
        show.controls["first"].value = first
        assert "falcon-40b" in show.picture.value
    assert "NVIDIA/TensorRT-LLM" in show.frame.event
    assert show.numbers["tiiuae/falcon-40b"].startswith("128 query heads on 8 KV heads")
    show.controls["kind"].value = "MQA"  # it is none: it leaves the list, not the line below
    assert ">falcon-40b<" not in show.picture.value
    assert ">falcon-7b<" in show.picture.value


def test_the_last_page_is_full_and_home_leads_back() -> None:
    show = catalogue_explorer()
    show.controls["first"].value = show.controls["first"].max
    assert show.picture.value.count("KiB") >= ROWS
    show.reset()
    assert show.values["first"] == 1

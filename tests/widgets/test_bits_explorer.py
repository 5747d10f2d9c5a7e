"""The explorer of chapter 08, driven without a browser: formula's bytes, the cache's errors."""

import pytest
import torch

from kvlab.arithmetic.quantized_bytes import quantized_bytes
from kvlab.errors import InvalidArgument
from kvlab.model.load import load_model
from kvlab.widgets.bits_explorer import FORMATS, GRANULARITIES, Block, bits_explorer, stored

TINY = load_model("tiny", device="cpu", dtype="float32")
SHAPE = {"num_layers": 2, "num_kv_heads": 2, "head_dim": 32}


def percent(words: str) -> float:
    return float(words.rstrip("%"))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_every_setting_is_drawn_with_the_bytes_of_the_formula(
    format: str, granularity: str
) -> None:
    show = bits_explorer()
    show.set(format=format, granularity=granularity, residual=64, context=1024)
    options = {"q_group_size": 32} if granularity in ("group", "channel") else {}
    options |= {"granularity": granularity, "residual_length": 64}
    wanted = quantized_bytes(format, tokens=1024, **SHAPE, **options)
    assert f"{wanted:,} of {2 * 2 * 2 * 32 * 1024 * 2:,} bytes" in show.frame.event
    assert show.error.value == ""


def test_fewer_bits_and_coarser_scales_raise_the_error() -> None:
    show = bits_explorer()
    errors = []
    for format in ("int8", "int4", "int2"):
        show.set(format=format, granularity="channel")
        errors.append(percent(show.numbers["error of keys"]))
    assert errors == sorted(errors) and errors[0] < 1 < errors[2]
    show.set(format="int4", granularity="tensor")
    assert percent(show.numbers["error of keys"]) > errors[1]


def test_the_error_shown_is_that_of_the_stored_block() -> None:
    block = Block(TINY, 1)
    keys, _ = stored(block, "int4", "token", 32)
    wanted = float((keys - block.keys).norm() / block.keys.norm())
    show = bits_explorer(TINY, layer=1)
    show.controls["granularity"].value = "token"
    assert percent(show.numbers["error of keys"]) == pytest.approx(100 * wanted, abs=0.006)
    assert block.keys.shape == (1, 2, 128, 32) and torch.isfinite(block.values).all()


def test_all_exact_tokens_save_nothing_and_home_leads_back() -> None:
    show = bits_explorer()
    show.set(context=128, residual=128)
    assert show.numbers["times smaller"] == "1.00x"
    show.reset()
    assert show.values == show.example
    assert "bits a number" in show.still()


def test_a_layer_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="layer=2: must be from 0 to 1"):
        bits_explorer("tiny", layer=2)


def test_the_picture_is_updated_in_place() -> None:
    show = bits_explorer()
    before = show.picture.value
    show.controls["format"].value = "int2"
    assert show.picture.value != before

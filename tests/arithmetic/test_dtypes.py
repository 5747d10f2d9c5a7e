"""Element types: their bits with scales, and rows that do not fill a block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.dtypes import CACHE_DTYPES, cache_dtype, with_scales
from kvlab.arithmetic.payload import CacheTypes, entry_bytes
from kvlab.arithmetic.storage import LayerStorage

BITS = {
    "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4,
    "q8_0": 8.5, "q4_0": 4.5, "q4_1": 5,
}  # fmt: skip


def test_bits_count_the_scales() -> None:
    assert {name: dtype.bits_per_element for name, dtype in CACHE_DTYPES.items()} == BITS


@pytest.mark.parametrize(("name", "same"), [("F16", "fp16"), ("torch.bfloat16", "bf16")])
def test_other_spellings_are_understood(name: str, same: str) -> None:
    assert cache_dtype(name) is CACHE_DTYPES[same]


@given(st.sampled_from(sorted(CACHE_DTYPES)), st.integers(0, 10_000))
def test_a_row_pays_for_whole_blocks(name: str, elements: int) -> None:
    dtype = cache_dtype(name)
    whole = dtype.bytes_for(elements)
    assert whole * 8 >= elements * dtype.bits_per_element
    assert whole < (elements + dtype.block) * dtype.bits_per_element / 8 + 1


def test_keys_and_values_of_different_types_add_separately() -> None:
    layer = LayerStorage(0, "full", num_kv_heads=1, k_dim=64, v_dim=64)
    mixed = entry_bytes(layer, CacheTypes.of("q8_0", "fp16"))
    assert mixed * 8 / 128 == (8.5 + 16) / 2 == 12.25


def test_scales_can_be_added_to_plain_integers() -> None:
    assert with_scales("int8", group_size=128, scale_bytes=4).bits_per_element == 8.25
    assert with_scales("int4", group_size=64, zero_bytes=2).bytes_for(65) == 2 * 36

"""What a quantised cache costs, by formula; the cache itself is held to it in tests/cache."""

from itertools import product
from typing import Any

import pytest

from kvlab.arithmetic.dtypes import with_scales
from kvlab.arithmetic.float8_values import FLOAT8_KINDS, float8_table, largest_float8
from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.quantized_bytes import (
    bits_per_element,
    bytes_at_bits,
    compression,
    quantized_bytes,
    reduction,
)
from kvlab.arithmetic.quantized_formats import FORMATS, GRANULARITIES
from kvlab.arithmetic.quantized_options import QuantizedOptions
from kvlab.errors import InvalidArgument

SHAPE: dict[str, Any] = {"num_kv_heads": 8, "head_dim": 128}


def test_int4_in_groups_of_64_with_scale_and_zero_point_takes_4_5_bits_not_4() -> None:
    bits = bits_per_element("int4", head_dim=128, q_group_size=64)
    assert bits == with_scales("int4", group_size=64, zero_bytes=2).bits_per_element == 4.5
    assert round(16 / bits, 2) == 3.56
    assert compression("int4", **SHAPE, tokens=8192, residual_length=0) == 16 / 4.5


def test_int8_with_one_scale_for_128_channels_is_1_969_times_smaller() -> None:
    bits = bits_per_element("int8", head_dim=128)
    assert bits == with_scales("int8", group_size=128).bits_per_element == 8.125
    assert compression("int8", **SHAPE, tokens=8192) == 16 / bits
    assert round(16 / bits, 3) == 1.969


def test_a_residual_of_128_exact_tokens_of_8192_leaves_3_42_times() -> None:
    found = compression("int4", **SHAPE, tokens=8192, residual_length=128)
    assert found == 8192 * 16 / ((8192 - 128) * 4.5 + 128 * 16)
    assert round(found, 2) == 3.42


def test_published_93_percent_is_82_by_architecture_and_the_rest_by_6_bit_storage() -> None:
    assert round(100 * reduction(389_120, 69_120), 1) == 82.2
    assert bytes_at_bits(69_120, bits=6) == 25_920
    assert round(100 * reduction(389_120, 25_920), 2) == 93.34


def test_a_cache_that_is_all_exact_costs_what_the_plain_formula_says() -> None:
    found = quantized_bytes(
        "int8", **SHAPE, tokens=77, batch=3, num_layers=2, key_format="exact", value_format="exact"
    )
    assert found == kv_bytes(num_layers=2, **SHAPE, bytes_per_element=2, batch=3, seq_len=77)


def test_bytes_of_keys_and_values_add_separately_whatever_the_pair() -> None:
    """K of 8.5 bits beside V of 16 is 12.25 bits; every pair of formats has a cost."""
    groups = {"granularity": "group", "q_group_size": 32, "head_dim": 128}
    assert bits_per_element("int8", **groups, value_format="exact") == (8.5 + 16) / 2
    alone = {name: bits_per_element(name, **groups) for name in FORMATS} | {"exact": 16.0}
    for key, value in product(alone, repeat=2):
        pair = {"key_format": key, "value_format": value}
        if pair != {"key_format": "exact", "value_format": "exact"}:
            found = bits_per_element("int8", **groups, **pair)
            assert found == (alone[key] + alone[value]) / 2


@pytest.mark.parametrize(
    ("granularity", "scales"),
    [("tensor", 1), ("token", 8 * 100), ("channel", 8 * 128 * 3), ("group", 8 * 100 * 4)],
)
def test_scales_are_counted_by_what_shares_them(granularity: str, scales: int) -> None:
    options = {"granularity": granularity, "residual_length": 0}
    if granularity in ("channel", "group"):
        options["q_group_size"] = 32
    found = quantized_bytes("int8", **SHAPE, tokens=100, **options)
    exact = 4 if granularity == "channel" else 0  # 100 = 3 groups of 32 tokens, and 4
    assert found == 2 * (8 * 128 * (100 - exact) + 2 * scales + 8 * 128 * 2 * exact)


def test_codes_fill_whole_bytes_and_default_groups_divide_any_width() -> None:
    odd = quantized_bytes(
        "int2", num_kv_heads=1, head_dim=5, tokens=10, granularity="token", residual_length=0
    )
    assert odd == 2 * 10 * (2 + 4)  # 5 codes in 2 bytes, a scale and a zero point
    groups = {dim: QuantizedOptions(format="int4").value.group_size(dim) for dim in (32, 80, 96)}
    assert groups == {32: 32, 80: 40, 96: 48}


def test_exact_tokens_are_the_sinks_the_newest_and_what_fills_no_group() -> None:
    options = QuantizedOptions(format="int4", q_group_size=4, residual_length=8, num_sink_tokens=2)
    kept = {"residual_length": 8, "num_sink_tokens": 2}
    keys = [options.key.quantized_tokens(tokens, **kept) for tokens in range(20)]
    values = [options.value.quantized_tokens(tokens, **kept) for tokens in range(20)]
    assert values == [max(0, tokens - 10) for tokens in range(20)]
    assert keys == [n - n % 4 for n in values]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nbits": 3}, "nbits=3: must be one of 8, 4, 2"),
    ({"format": "int3"}, "format='int3': must be one of fp8, fp8-e5m2, int8, int4, int2"),
    ({"format": "int4", "nbits": 8}, "nbits=8: the format is int4 already"),
    ({"key_format": "int1"}, "key_format='int1': must be one of"),
    ({"granularity": "head"}, "granularity='head': must be one of tensor, token, channel, group"),
    ({"key_granularity": 3}, "granularity=3: must be one of"),
    ({"residual_length": -1}, "residual_length=-1: must be a whole number of 0 or more"),
    ({"num_sink_tokens": -1}, "num_sink_tokens=-1: must be a whole number of 0 or more"),
    ({"q_group_size": 0}, "q_group_size=0: must be a whole number of 1 or more"),
    ({"value_q_group_size": 2.5}, "value_q_group_size=2.5: must be a whole number"),
    ({"granularity": "token", "q_group_size": 8}, "q_group_size=8: neither keys nor values have"),
    ({"key_granularity": "token", "key_q_group_size": 8}, "granularity 'token' has no groups"),
    ({"format": "fp8", "symmetric": False}, "symmetric=False: fp8 has no zero point"),
    ({"symmetric": 1}, "symmetric=1: must be True or False"),
    ({"exact_prefill": None}, "exact_prefill=None: must be True or False"),
    ({"key_scale": 1.0}, "key_scale=1.0: one scale given beforehand needs granularity='tensor'"),
    ({"format": "fp8", "key_scale": 0.0}, "key_scale=0.0: must be finite and above 0"),
    ({"format": "fp8", "value_scale": "1"}, "value_scale='1': must be a number"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED, ids=lambda x: str(x)[:40])
def test_options_that_make_no_sense_are_refused_by_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        QuantizedOptions(**options)
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_groups_that_do_not_fill_the_channels_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="q_group_size=48: must divide the 128 channels"):
        quantized_bytes("int8", **SHAPE, tokens=5, q_group_size=48)
    for argument, value in [("tokens", -1), ("batch", 0), ("head_dim", 0), ("num_layers", 0)]:
        with pytest.raises(InvalidArgument, match=f"{argument}={value}"):
            quantized_bytes("int8", **{**SHAPE, "tokens": 5, argument: value})
    with pytest.raises(InvalidArgument, match="tokens=0"):
        compression("int8", **SHAPE, tokens=0)
    with pytest.raises(InvalidArgument, match="bits=0"):
        bytes_at_bits(100, bits=0)
    with pytest.raises(InvalidArgument, match="before=0"):
        reduction(0, 1)


def test_every_format_has_a_cost_at_every_granularity() -> None:
    for name, granularity in product(FORMATS, GRANULARITIES):
        options = {"granularity": granularity, "residual_length": 0}
        bits = bits_per_element(name, head_dim=64, **options)
        assert FORMATS[name].nbits <= bits <= FORMATS[name].nbits + 1
        long = compression(name, num_kv_heads=2, head_dim=64, tokens=2**16, **options)
        assert long == pytest.approx(16 / bits, rel=1e-4)


def test_the_256_numbers_of_fp8_follow_their_bits() -> None:
    e4m3, e5m2 = float8_table("e4m3"), float8_table("e5m2")
    finite = [sum(x.value - x.value == 0 for x in table) for table in (e4m3, e5m2)]
    assert finite == [254, 248]  # two NaN; two infinities and six NaN
    assert [largest_float8(kind) for kind in FLOAT8_KINDS] == [448.0, 57344.0]
    smallest = [min(x.value for x in table if x.value > 0) for table in (e4m3, e5m2)]
    assert smallest == [2.0**-9, 2.0**-16]
    for kind, table in (("e4m3", e4m3), ("e5m2", e5m2)):
        assert [x.byte for x in table] == list(range(256))
        assert [int(x.pattern.replace(" ", ""), 2) for x in table] == list(range(256))
        upward = [x.value for x in table[:128] if x.value < float("inf")]
        assert upward == sorted(set(upward)), kind
        assert all(table[i + 128].value == -table[i].value for i in range(len(upward)))
    with pytest.raises(InvalidArgument, match="kind='e3m4': must be one of e4m3, e5m2"):
        float8_table("e3m4")

"""Numbers to codes and back: how far off they may be, and what must stay exact."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kvlab.arithmetic.float8_values import float8_table
from kvlab.cache.float8 import float8_codec
from kvlab.cache.packing import pack, packed_width, unpack, unpack_to_float
from kvlab.cache.quantized_tensor import check_numbers, dequantize, quantize
from kvlab.cache.quantizers import fp16_not_below
from kvlab.errors import InvalidArgument, Unsupported

INTEGERS = ["int8", "int4", "int2"]
FLOATS = {"fp8": ("e4m3", 2**-4, 2**-10), "fp8-e5m2": ("e5m2", 2**-3, 2**-17)}
GRANULARITIES = ["tensor", "token", "channel", "group"]
SLACK = 1 + 1e-5  # float32 arithmetic on the way

tensors = st.builds(
    lambda numbers, scale, offset, seed: shaped(numbers, scale, offset, seed),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=6),
    st.sampled_from([1e-7, 1e-3, 1.0, 300.0]),
    st.sampled_from([0.0, 0.0, 1.0, -40.0, 1000.0]),
    st.integers(0, 9),
)


def shaped(numbers: list[float], scale: float, offset: float, seed: int) -> Tensor:
    """Return (1, 2, 8, 16) random numbers with a few chosen ones among them, and some zeros."""
    generator = torch.Generator().manual_seed(seed)
    every = torch.randn(256, generator=generator)
    every[: len(numbers)] = torch.tensor(numbers)
    every = every * scale + offset
    every[torch.randperm(256, generator=generator)[:8]] = 0.0
    return every.view(1, 2, 8, 16)


def options_for(granularity: str) -> dict[str, Any]:
    return {"granularity": granularity} | (
        {"q_group_size": 4} if granularity in ("channel", "group") else {}
    )


def round_trip(numbers: Tensor, name: str, **options: Any) -> tuple[Tensor, Tensor]:
    """Return (what comes back, the step or scale stored for each number)."""
    codes, recipe = quantize(numbers, name, **options)
    scale = codes.scale.float()
    if codes.scale.numel() > 1:
        axis = 2 if options["granularity"] == "channel" else 3
        scale = scale.repeat_interleave(numbers.shape[axis] // scale.shape[axis], dim=axis)
    return dequantize(codes, recipe), scale


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("name", INTEGERS)
@settings(max_examples=12, deadline=None)
@given(numbers=tensors)
def test_no_integer_code_is_off_by_more_than_half_a_stored_step_and_zeros_are_exact(
    name: str, granularity: str, symmetric: bool, numbers: Tensor
) -> None:
    back, step = round_trip(numbers, name, symmetric=symmetric, **options_for(granularity))
    assert bool(((back - numbers).abs() <= step / 2 * SLACK + numbers.abs() * 1e-6).all())
    assert bool((back[numbers == 0] == 0).all())
    low, high = numbers.min(), numbers.max()
    ideal = (high - low) if not symmetric else 2 * torch.maximum(-low, high)
    levels = 2 ** int(name[3:]) - (2 if symmetric else 1)
    finest = numbers.abs().max() / 2048
    assert bool((step <= torch.maximum(ideal / levels, finest) * (1 + 2**-10) + 2**-23).all())


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("name", FLOATS)
@settings(max_examples=12, deadline=None)
@given(numbers=tensors)
def test_no_fp8_number_is_off_by_more_than_its_format_allows_and_zeros_are_exact(
    name: str, granularity: str, numbers: Tensor
) -> None:
    _, relative, smallest_half = FLOATS[name]
    back, scale = round_trip(numbers, name, **options_for(granularity))
    allowed = torch.maximum(numbers.abs() * relative, scale * smallest_half)
    assert bool(((back - numbers).abs() <= allowed * SLACK).all())
    assert bool((back[numbers == 0] == 0).all())


EXTREMES = st.lists(
    st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=8, max_size=8
)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
@settings(max_examples=60, deadline=None)
@given(numbers=EXTREMES, granularity=st.sampled_from(GRANULARITIES), symmetric=st.booleans())
def test_whatever_is_finite_stays_finite(
    name: str, numbers: list[float], granularity: str, symmetric: bool
) -> None:
    options = {"granularity": granularity}
    if granularity in ("channel", "group"):
        options["q_group_size"] = 2
    if name in INTEGERS:
        options["symmetric"] = symmetric
    codes, recipe = quantize(torch.tensor(numbers).view(1, 1, 2, 4), name, **options)
    assert bool(codes.scale.isfinite().all()) and bool((codes.scale > 0).all())
    assert bool(dequantize(codes, recipe).isfinite().all())


@pytest.mark.parametrize("name", FLOATS)
def test_fp8_clamps_before_the_cast_which_would_give_infinity(name: str) -> None:
    codec = float8_codec(name, one_scale=True)
    far, one = torch.tensor([1e6, -1e6, 60_000.0]), torch.ones(())
    back = codec.decode(codec.encode(far, one, None), one, None)
    assert back.tolist() == [codec.largest, -codec.largest, min(codec.largest, 57344.0)]
    if name == "fp8-e5m2":
        assert not bool(far.to(torch.float8_e5m2).float().isfinite().all())


@pytest.mark.parametrize("name", FLOATS)
def test_the_256_bytes_mean_to_us_what_they_mean_to_torch(name: str) -> None:
    codec = float8_codec(name, one_scale=False)
    every = torch.arange(256, dtype=torch.uint8)
    theirs = every.view(codec.dtype).float()
    ours = torch.tensor([entry.value for entry in float8_table(FLOATS[name][0])])
    assert torch.equal(ours.nan_to_num(nan=9e9), theirs.nan_to_num(nan=9e9))
    assert torch.equal(ours.signbit(), theirs.signbit())  # minus zero too
    numbers = every[ours.isfinite()]
    one = torch.ones(())
    assert torch.equal(codec.encode(codec.decode(numbers, one, None), one, None), numbers)


@pytest.mark.parametrize("value", [3.0, 0.0, -0.1, 1e-3, 500.0])
@pytest.mark.parametrize("tokens", [4, 1])
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_constant_groups_come_back_right_and_their_scale_is_finite_in_fp16(
    name: str, tokens: int, value: float
) -> None:
    """Groups of all 3.0, of all 0.0, and of a single value: no division by a range of 0."""
    numbers = torch.full((1, 1, tokens, 4), value)
    for symmetric in (True, False) if name in INTEGERS else (None,):
        options = {"granularity": "channel", "q_group_size": tokens, "symmetric": symmetric}
        codes, recipe = quantize(numbers, name, **options)
        assert codes.scale.dtype == torch.float16 and bool(codes.scale.isfinite().all())
        assert bool((codes.scale > 0).all())
        back = dequantize(codes, recipe)
        # below 2^-14 a scale in FP16 is coarse; FP8 then says a number as well as its format can
        coarse = name in FLOATS and abs(value) < 1
        rtol = FLOATS[name][1] if coarse else 1e-3
        assert torch.allclose(back, numbers, rtol=rtol, atol=1e-5)
        if value in (0.0, 3.0) and symmetric is False:
            assert torch.equal(back, numbers)


@pytest.mark.parametrize("head_dim", [32, 96, 128])
def test_no_padding_of_zeros_enters_the_range_of_a_group(head_dim: int) -> None:
    """32 values from 10 to 11 in 4 bits: a step of 0.0667; with a 0 among them it would be 0.73."""
    numbers = torch.linspace(10, 11, 32).repeat(head_dim // 32).view(1, 1, 1, head_dim)
    options = {"granularity": "group", "q_group_size": 32, "symmetric": False}
    codes, recipe = quantize(numbers, "int4", **options)
    assert codes.scale.float().max() == pytest.approx(1 / 15, rel=1e-3)
    assert (dequantize(codes, recipe) - numbers).abs().max() <= 0.0334
    with_zero = torch.cat([numbers[..., :31], torch.zeros(1, 1, 1, 1)], dim=-1)
    codes, recipe = quantize(with_zero, "int4", **options)
    assert (dequantize(codes, recipe) - with_zero).abs().max() > 0.3


def test_fp8_without_a_scale_is_wrong_by_half_where_values_are_large_and_right_with_one() -> None:
    """Values from -1000 to 1000: with the scale amax/448 at most 6.25 % off, with 1.0 55.2 %."""
    numbers = torch.linspace(-1000, 1000, 4096).view(1, 1, 64, 64)
    large = numbers.abs() > 1000 / 64
    for scale, worst in ((None, 0.0625), (1.0, 0.552)):
        back, _ = round_trip(numbers, "fp8", granularity="tensor", key_scale=scale)
        relative = ((back - numbers).abs() / numbers.abs())[large].max()
        assert relative <= worst + 1e-6
    assert relative == pytest.approx(0.552, abs=1e-3)


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_what_was_quantised_once_has_the_same_codes_the_second_time(
    name: str, granularity: str
) -> None:
    options = options_for(granularity)
    numbers = torch.randn(2, 2, 16, 16, generator=torch.Generator().manual_seed(1))
    for symmetric in (True, False) if name in INTEGERS else (None,):
        first, recipe = quantize(numbers, name, symmetric=symmetric, **options)
        back = dequantize(first, recipe)
        again = recipe.encode(back, first.scale, first.zero)
        assert torch.equal(again, first.codes)
        if symmetric:  # the scale, too, is found again from what came back
            second, _ = quantize(back, name, symmetric=symmetric, **options)
            assert torch.equal(second.codes, first.codes)
            assert torch.equal(second.scale, first.scale)


@settings(max_examples=40, deadline=None)
@given(nbits=st.sampled_from([8, 4, 2]), width=st.integers(1, 19), seed=st.integers(0, 99))
def test_packing_loses_nothing_and_fills_whole_bytes(nbits: int, width: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 2**nbits, (2, 3, width), generator=generator, dtype=torch.uint8)
    packed = pack(codes, nbits)
    assert packed.shape == (2, 3, packed_width(width, nbits)) == (2, 3, -(-width * nbits // 8))
    assert packed.dtype == torch.uint8
    assert torch.equal(unpack(packed, nbits, width), codes)
    assert torch.equal(unpack_to_float(packed, nbits, width), codes.float())


def test_int4_lies_two_to_a_byte_and_int2_four() -> None:
    numbers = torch.randn(1, 1, 8, 64)
    sizes = {name: quantize(numbers, name, granularity="token")[0].codes.shape for name in INTEGERS}
    assert [sizes[name][-1] for name in INTEGERS] == [64, 32, 16]
    symmetric = quantize(numbers, "int4", granularity="token", symmetric=True)[0]
    assert symmetric.zero is None and symmetric.nbytes == 8 * (32 + 2)


def test_scales_are_rounded_up_to_fp16_so_that_no_number_is_outside_of_the_steps() -> None:
    wanted = torch.cat([torch.rand(500) * 10.0**e for e in range(-9, 7)])
    stored = fp16_not_below(wanted).float()
    inside = (wanted <= 65504) & (wanted > 2.0**-24)
    assert bool((stored >= wanted)[inside].all())
    assert bool((stored <= wanted * (1 + 2**-10) + 2**-24)[inside].all())
    assert bool((stored > 0).all()) and bool((stored <= 65504).all())


def test_numbers_that_have_no_place_on_a_scale_are_refused_by_name() -> None:
    good = torch.ones(1, 1, 4, 8)
    for wrong, says in [(float("nan"), "nan"), (float("inf"), "inf"), (-float("inf"), "-inf")]:
        bad = good.clone()
        bad[0, 0, 2, 3] = wrong
        with pytest.raises(InvalidArgument, match=f"numbers={says}: must be finite"):
            quantize(bad, "int8")
    for dtype in (torch.int64, torch.float8_e4m3fn, torch.complex64):
        with pytest.raises(InvalidArgument, match=r"numbers=torch\.\w+: must be float16"):
            quantize(good.to(dtype), "fp8")
    with pytest.raises(InvalidArgument, match="tokens=4: must be a multiple of q_group_size=3"):
        quantize(good, "int4", granularity="channel", q_group_size=3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_finite_numbers_are_taken_even_where_their_sum_is_infinite(dtype: torch.dtype) -> None:
    numbers = torch.full((1, 1, 64, 64), torch.finfo(dtype).max, dtype=dtype)
    check_numbers("numbers", numbers)
    numbers[0, 0, 3, 5] = float("inf")
    with pytest.raises(InvalidArgument, match="numbers=inf: must be finite"):
        check_numbers("numbers", numbers)


@pytest.mark.parametrize("name", ["fp8", "fp8-e5m2", "int8"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_looking_bytes_up_gives_what_decoding_each_of_them_gives(
    name: str, dtype: torch.dtype
) -> None:
    numbers = torch.randn(2, 2, 8, 16, generator=torch.Generator().manual_seed(1)) * 3
    codes, recipe = quantize(numbers, name, granularity="tensor")
    each = recipe.codec.decode(codes.codes, codes.scale.float(), codes.zero)
    assert torch.equal(recipe.decode(*codes, dtype), each.to(dtype))


def test_fp8_is_refused_by_name_where_the_device_or_torch_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(torch, "float8_e5m2")
    with pytest.raises(Unsupported, match="format='fp8-e5m2': device cpu has no float8_e5m2"):
        quantize(torch.ones(1, 1, 1, 4), "fp8-e5m2")

"""Units: exact at the borders, GiB and GB told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.units import GB, GIB, KIB, format_bytes, format_flops, gb, gib
from kvlab.errors import InvalidArgument


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (KIB, "1.00 KiB (1.02 kB)"),
        (327_680, "320.00 KiB (327.68 kB)"),
        (2**20, "1.00 MiB (1.05 MB)"),
        (GIB, "1.00 GiB (1.07 GB)"),
        (2_684_354_560, "2.50 GiB (2.68 GB)"),
        (2**40, "1.00 TiB (1.10 TB)"),
        (5000 * 2**40, "5,000.00 TiB (5,497.56 TB)"),
    ],
)
def test_sizes_are_written_in_both_units(num_bytes: int, text: str) -> None:
    assert format_bytes(num_bytes) == text


def test_gib_and_gb_differ_by_seven_percent() -> None:
    assert gb(GIB) / gib(GIB) == GIB / GB == 1.073741824


@given(st.integers(0, 10**40))
def test_any_amount_can_be_written(amount: int) -> None:
    assert format_bytes(amount)
    assert format_flops(amount).endswith("FLOP")


@pytest.mark.parametrize(
    ("flops", "text"),
    [(0, "0 FLOP"), (999, "999 FLOP"), (1000, "1.0 KFLOP"), (424_500 * 10**9, "424.5 TFLOP")],
)
def test_work_is_written_with_a_decimal_prefix(flops: int, text: str) -> None:
    assert format_flops(flops) == text


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None, float("nan")])
def test_a_count_that_is_no_whole_number_is_named(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"tokens=.*whole number of 1 or more"):
        whole_number("tokens", value)

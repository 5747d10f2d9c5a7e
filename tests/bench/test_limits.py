"""The limits are plain arithmetic: bytes over bandwidth, FLOPs over a rate, slopes."""

import pytest
import torch

from kvlab.bench.limits import (
    decode_bytes,
    mean_context,
    roofline_seconds,
    seconds_to_read,
    slope,
)
from kvlab.bench.rates import Multiplier, Reader, matrix_rate
from kvlab.bench.timing import Times
from kvlab.errors import InvalidArgument


@pytest.mark.parametrize(("prompt", "new"), [(1, 2), (512, 128), (64, 64)])
def test_the_mean_context_is_that_of_every_step(prompt: int, new: int) -> None:
    read = [prompt + step for step in range(1, new)]  # the prompt, and what was fed so far
    assert mean_context(prompt, new) == sum(read) / len(read)


def test_a_decode_step_reads_the_weights_once_and_the_cache() -> None:
    assert decode_bytes(538, 2, prompt_tokens=512, new_tokens=128) == 538 + 2 * 576


def test_the_longer_of_reading_and_computing_counts() -> None:
    speed = {"flops_per_second": 100.0, "bytes_per_second": 10.0}
    assert roofline_seconds(1000, 10, **speed) == 10
    assert roofline_seconds(10, 1000, **speed) == 100
    assert seconds_to_read(50, 10) == 5


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(InvalidArgument, match="bytes_per_second"):
        seconds_to_read(1, rate)


@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2])
def test_the_slope_of_a_power_is_its_exponent(exponent: float) -> None:
    xs = [1, 3, 10, 40]
    assert slope(xs, [5 * x**exponent for x in xs]) == pytest.approx(exponent)


def test_rates_come_from_the_fastest_round() -> None:
    reader, square = Reader(8192 * 4 * 10, torch.float32), Multiplier(8)
    assert reader.num_bytes == 8192 * 4 * 10
    assert reader.rate(Times((2.0, 1.0, 4.0))) == reader.num_bytes
    assert matrix_rate({"m": square}, {"m": Times((2.0, 0.5))}) == 2 * 8**3 / 0.5

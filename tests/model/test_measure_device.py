"""Measuring the device: sane numbers from real work; no speed is asserted."""

import torch

from kvlab.model.measure_device import DTYPES, DeviceSpeed, dtype_rows, measure_device


def test_a_quick_measurement_gives_two_positive_rates() -> None:
    speed = measure_device("cpu", seconds=0.01)
    assert speed.bytes_per_second > 0
    assert speed.flops_per_second > 0
    assert (speed.device.split(" ")[0], speed.dtype) == ("cpu", "float32")


def test_the_least_time_is_bytes_over_bandwidth() -> None:
    assert DeviceSpeed("cpu", "float32", 8e9, 1e9).seconds_to_read(4 * 10**9) == 0.5


def test_the_table_tells_the_bytes_that_torch_uses() -> None:
    for row, dtype in zip(dtype_rows(), DTYPES, strict=True):
        assert int(row[2]) == torch.zeros(1, dtype=dtype).nbytes
        assert int(row[1]) == 8 * int(row[2])

"""FP8: 8 bits that are a floating-point number already; the scale only moves the range.

The cast to FP8 is torch's; back, each byte is looked up among the 256 numbers of `float8_table`.
Numbers are clamped to the largest one before the cast, because E5M2 would make them infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from kvlab.arithmetic.float8_values import float8_table, largest_float8
from kvlab.cache.quantizers import fp16_not_below
from kvlab.errors import Unsupported

__all__ = ["Float8", "float8_codec", "float8_table"]

_KINDS = {"fp8": ("e4m3", "float8_e4m3fn"), "fp8-e5m2": ("e5m2", "float8_e5m2")}


@dataclass(frozen=True)
class Float8:
    """Codes that are FP8 numbers; `one_scale`: there is a single FP32 scale, not many FP16 ones."""

    kind: str
    dtype: torch.dtype
    one_scale: bool

    @property
    def largest(self) -> float:
        """The largest FP8 number."""
        return largest_float8(self.kind)

    def scale_for(self, low: Tensor, high: Tensor) -> tuple[Tensor, None]:
        """Return scales that move the number farthest from 0 to the largest FP8 number."""
        wanted = torch.maximum(-low, high).div_(self.largest)
        if self.one_scale:  # never 0, also where all numbers are; never so large that they overflow
            fp32 = torch.finfo(torch.float32)
            return wanted.clamp_(fp32.tiny, fp32.max / self.largest * (1 - 1e-6)), None
        return fp16_not_below(wanted), None

    def encode(self, numbers: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return the bytes of the nearest FP8 numbers."""
        moved = (numbers / scale).clamp_(-self.largest, self.largest)
        return moved.to(self.dtype).view(torch.uint8)

    def decode(self, codes: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return what the bytes stand for."""
        known = _numbers_of_bytes(self.kind, codes.device)  # many times faster than a cast
        return known.index_select(0, codes.flatten().int()).view(codes.shape).mul_(scale)


def float8_codec(name: str, *, one_scale: bool, device: torch.device | str = "cpu") -> Float8:
    """Return the codec of "fp8" or "fp8-e5m2"; `Unsupported` where the device can't cast to it.

    >>> float8_codec("fp8", one_scale=True).largest
    448.0
    """
    kind, dtype_name = _KINDS[name]
    dtype = getattr(torch, dtype_name, None)
    if dtype is None or not _can_cast(dtype, str(device)):
        raise Unsupported(f"format={name!r}: device {device} has no {dtype_name}")
    return Float8(kind, dtype, one_scale)


@cache
def _can_cast(dtype: torch.dtype, device: str) -> bool:
    try:
        torch.ones(1, device=device).to(dtype).to(torch.float32)
    except (TypeError, RuntimeError):  # which one depends on the device
        return False
    return True


@cache
def _numbers_of_bytes(kind: str, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        values = [entry.value for entry in float8_table(kind)]
        return torch.tensor(values, dtype=torch.float32, device=device)

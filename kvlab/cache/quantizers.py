"""Numbers to integer codes with a scale, and back: the arithmetic of INT8, INT4 and INT2.

A scale is rounded up to FP16, so no number of the group lies outside its steps, and a number is
never off by more than half a stored step. Left out: which numbers share a scale
(`quantized_tensor.py`), and FP8 (`float8.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

FP16_MAX = torch.finfo(torch.float16).max
SMALLEST_FP16 = 2.0**-24
FARTHEST_ZERO = 2048
"""Whole numbers up to here are exact in FP16; a step is never finer than the 2048th part of the
largest number, which is all that 16 bits tell apart."""


class Codec(Protocol):
    """How numbers become codes of one byte each: integers here, FP8 in `float8.py`."""

    def scale_for(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return (scales, zero points or None) of groups with these smallest and largest numbers.

        Both in and out are float32 or narrower, one number a group.
        """
        ...

    def encode(self, numbers: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return uint8 codes; numbers, scale and zero are float32 and broadcast."""
        ...

    def decode(self, codes: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return float32 numbers; scale and zero are float32 and broadcast.

        `codes` are uint8. Integer codes may be float32 already: then they are overwritten.
        """
        ...


def fp16_not_below(numbers: Tensor) -> Tensor:
    """Return the smallest positive FP16 number that is not below each one; at most 65504.

    >>> fp16_not_below(torch.tensor([0.0, 1.0, 1.0001]))
    tensor([5.9605e-08, 1.0000e+00, 1.0010e+00], dtype=torch.float16)
    """
    wanted = numbers.float().clamp(SMALLEST_FP16, FP16_MAX)
    nearest = wanted.half()
    too_small = (nearest.float() < wanted).to(torch.int16)
    return (nearest.view(torch.int16) + too_small).view(torch.float16)  # its bits + 1: the next one


@dataclass(frozen=True)
class SymmetricIntegers:
    """Codes from -(2^(nbits-1) - 1) to 2^(nbits-1) - 1, stored above 0; 0 is 0, no zero point."""

    nbits: int

    @property
    def largest(self) -> int:
        """The largest code."""
        return 2 ** (self.nbits - 1) - 1

    def scale_for(self, low: Tensor, high: Tensor) -> tuple[Tensor, None]:
        """Return scales that reach the number farthest from 0."""
        return fp16_not_below(torch.maximum(-low, high) / self.largest), None

    def encode(self, numbers: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return the nearest codes, moved up by 2^(nbits-1) so that none is negative."""
        steps = (numbers / scale).round_().clamp_(-self.largest, self.largest)
        return steps.add_(self.largest + 1).to(torch.uint8)

    def decode(self, codes: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return what the codes stand for."""
        return codes.float().sub_(self.largest + 1).mul_(scale)


@dataclass(frozen=True)
class AsymmetricIntegers:
    """Codes from 0 to 2^nbits - 1, spread from a group's smallest to its largest number.

    The zero point is the code that means 0. Where all numbers lie on one side of 0 it is outside
    the codes; it is a whole number always, so a number that is 0 is read as exactly 0.
    """

    nbits: int

    @property
    def largest(self) -> int:
        """The largest code."""
        return 2**self.nbits - 1

    def scale_for(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Return scales and zero points that reach from `low` to `high`, and no further."""
        finest = torch.maximum(low.abs(), high.abs()) / FARTHEST_ZERO
        scale = fp16_not_below(torch.maximum((high - low) / self.largest, finest))
        zero = (-low / scale.float()).round_().clamp_(-FARTHEST_ZERO, FARTHEST_ZERO)
        return scale, zero.half()

    def encode(self, numbers: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return the nearest codes."""
        return (numbers / scale).round_().add_(zero).clamp_(0, self.largest).to(torch.uint8)

    def decode(self, codes: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return what the codes stand for."""
        return codes.float().sub_(zero).mul_(scale)

"""Weights in the narrowest form that gives back every one of them, to the last bit.

A model that was published in 4 bits is made of few values, also when its file says float32; one
published in bfloat16 has 16 zero bits in each float32. Reading what is left of the bits is enough.
Left out: forms that lose something.
"""

from enum import IntEnum

import torch
from torch import Tensor

GROUP = 32  # neighbours in a row that share a scale, as in a GGUF file


class Form(IntEnum):
    """How a matrix is kept; the numbers are those of `fast_numbers.h`."""

    FLOAT32 = 0
    BFLOAT16 = 1
    EIGHT_BITS = 2
    FOUR_BITS = 3


def pack(weight: Tensor, *, narrow: bool = True) -> tuple[Form, Tensor]:
    """Return the narrowest form of a float32 matrix that loses nothing, and its bytes by row.

    `narrow=False` leaves it as it is, without a copy. (rows, columns) becomes (rows, row bytes).

    >>> few = torch.arange(32.0)[None] % 16 / 4
    >>> [pack(weight)[0].name for weight in (few, few.exp().bfloat16().float(), few.exp())]
    ['FOUR_BITS', 'BFLOAT16', 'FLOAT32']
    """
    weight = weight.detach()
    if narrow and weight.shape[1] % GROUP == 0:
        for form, attempt in (
            (Form.FOUR_BITS, _four_bits),
            (Form.EIGHT_BITS, _eight_bits),
            (Form.BFLOAT16, _bfloat16),
        ):
            if attempt(weight[:4]) is None:  # a few rows tell most of the time
                continue
            packed = attempt(weight)
            if packed is not None:
                return form, packed.contiguous()
    return Form.FLOAT32, weight.contiguous()


def _four_bits(weight: Tensor) -> Tensor | None:
    """w = scale x q + lowest with q from 0 to 15: 24 bytes for 32 numbers, or None."""
    groups = weight.view(len(weight), -1, GROUP)
    lowest, highest = groups.aminmax(dim=-1, keepdim=True)
    scale = _half((highest - lowest) / 15)
    steps = _steps(groups - lowest, scale).clamp_(0, 15)
    if not torch.equal(torch.addcmul(lowest, scale, steps), groups):
        return None
    q = steps.to(torch.uint8)
    pairs = q[..., : GROUP // 2] | (q[..., GROUP // 2 :] << 4)
    return torch.cat([scale.view(torch.uint8), lowest.view(torch.uint8), pairs], -1).flatten(1)


def _eight_bits(weight: Tensor) -> Tensor | None:
    """w = scale x q with q from -127 to 127: 36 bytes for 32 numbers, or None."""
    groups = weight.view(len(weight), -1, GROUP)
    scale = _half(groups.abs().amax(dim=-1, keepdim=True) / 127)
    steps = _steps(groups, scale).clamp_(-127, 127)
    if not torch.equal(scale * steps, groups):
        return None
    q = steps.to(torch.int8).view(torch.uint8)
    return torch.cat([scale.view(torch.uint8), q], -1).flatten(1)


def _bfloat16(weight: Tensor) -> Tensor | None:
    """The upper half of each float32, where the lower one is 0, or None."""
    half = weight.to(torch.bfloat16)
    return half if torch.equal(half.float(), weight) else None


def _half(scale: Tensor) -> Tensor:
    """Scales are 16-bit numbers in the files that use them."""
    return scale.half().float()


def _steps(distance: Tensor, scale: Tensor) -> Tensor:
    return torch.where(scale > 0, distance / scale, 0).round_()

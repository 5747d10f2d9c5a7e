"""Codes of 8, 4 or 2 bits put side by side into bytes, and taken out again; no scales here."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def packed_width(num_codes: int, nbits: int) -> int:
    """Return the bytes that a row of codes fills; the last byte may stay partly empty.

    >>> packed_width(64, 4), packed_width(5, 2)
    (32, 2)
    """
    return -(-num_codes * nbits // 8)


def pack(codes: Tensor, nbits: int) -> Tensor:
    """Return the codes of each row, uint8 below 2^nbits, in as few bytes; the first lies lowest.

    (..., n) becomes (..., packed_width(n, nbits)).

    >>> pack(torch.tensor([1, 2, 3, 4, 15], dtype=torch.uint8), 4).tolist()
    [33, 67, 15]
    """
    per_byte = 8 // nbits
    if per_byte == 1:
        return codes
    rows = F.pad(codes, (0, -codes.shape[-1] % per_byte))
    rows = rows.unflatten(-1, (rows.shape[-1] // per_byte, per_byte))
    packed = rows[..., 0].clone()
    for place in range(1, per_byte):
        packed |= rows[..., place] << place * nbits
    return packed


def unpack(packed: Tensor, nbits: int, num_codes: int) -> Tensor:
    """Return the `num_codes` codes that lie in each row of bytes, uint8.

    >>> unpack(torch.tensor([33, 67, 15], dtype=torch.uint8), 4, num_codes=5).tolist()
    [1, 2, 3, 4, 15]
    """
    per_byte = 8 // nbits
    if per_byte == 1:
        return packed
    mask = 2**nbits - 1
    places = [packed >> place * nbits & mask for place in range(per_byte)]
    return torch.stack(places, dim=-1).flatten(-2)[..., :num_codes]

"""Codes of 8, 4 or 2 bits put side by side into bytes, and taken out again; no scales here."""

from __future__ import annotations

from functools import cache

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


def unpack_to_float(packed: Tensor, nbits: int, num_codes: int) -> Tensor:
    """Return the `num_codes` codes that lie in each row of bytes, as new float32 numbers.

    A byte of several codes is looked up: one access gives all of its numbers.

    >>> unpack_to_float(torch.tensor([33, 67, 15], dtype=torch.uint8), 4, num_codes=5).tolist()
    [1.0, 2.0, 3.0, 4.0, 15.0]
    """
    if nbits == 8:
        return packed.to(torch.float32)
    known = _numbers_in_bytes(nbits, packed.device)
    found = known.index_select(0, packed.flatten().int()).view(torch.float32)
    return found.view(*packed.shape[:-1], -1)[..., :num_codes]


@cache
def _numbers_in_bytes(nbits: int, device: torch.device) -> Tensor:
    """Return the float32 numbers in each of the 256 bytes, two seen as one int64."""
    with torch.inference_mode(False):
        every = torch.arange(256, dtype=torch.uint8, device=device)[:, None]
        known = unpack(every, nbits, 8 // nbits).float().view(torch.int64)
        return known.view(-1) if known.shape[1] == 1 else known

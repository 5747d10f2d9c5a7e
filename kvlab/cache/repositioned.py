"""Keys turned to other places than those at which they came: re-rotation after eviction.

A key is stored as RoPE turned it. To stand elsewhere it is turned by the difference, on the way
out and from what was stored: a key turned again and again would gather rounding at every step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kvlab.errors import InvalidArgument

POSITIONS = ("kept", "rerotated")


def check_positions(positions: str, inv_freq: Tensor | None) -> bool:
    """Return whether keys are to be re-rotated; raise `InvalidArgument` by name."""
    if positions not in POSITIONS:
        raise InvalidArgument("positions", positions, f"must be one of {', '.join(POSITIONS)}")
    if positions == "kept" and inv_freq is None:
        return False
    if not isinstance(inv_freq, Tensor) or inv_freq.dim() != 1:
        rule = "re-rotating needs the model's RoPE, (head_dim / 2,): model.rope.inv_freq"
        raise InvalidArgument("inv_freq", inv_freq, rule)
    return positions == "rerotated"


def turn(keys: Tensor, distance: Tensor, inv_freq: Tensor) -> Tensor:
    """Turn keys (batch, num_kv_heads, kept, head_dim) onwards by `distance` tokens.

    `distance` is (batch or 1, num_kv_heads or 1, kept). Pairs are (i, i + head_dim / 2), as in a
    Llama. Computed in float32.

    >>> quarter = torch.tensor([torch.pi / 2])  # the angle of one position
    >>> turn(torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[4]]]), quarter).round().tolist()
    [[[[1.0, 0.0]]]]
    """
    if keys.shape[-1] != 2 * len(inv_freq):
        rule = f"must have head_dim / 2 = {keys.shape[-1] // 2} numbers"
        raise InvalidArgument("inv_freq", tuple(inv_freq.shape), rule)
    angle = distance[..., None].float() * inv_freq.to(keys.device)
    cos, sin = angle.cos(), angle.sin()
    first, second = keys.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(keys.dtype)

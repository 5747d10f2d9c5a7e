"""Rotary positions: the angle by which each pair of a query or key is turned.

Four kinds, all cache-stable: the angle of a token depends on its own position alone, so a cached
key never has to be turned again. `dynamic` and `longrope` are refused in
`rope_config.py`.
"""

import math

import torch
from torch import Tensor

from kvlab.model.rope_config import RopeConfig


def inverse_frequencies(rope: RopeConfig, head_dim: int) -> tuple[Tensor, float]:
    """Return the angle per position of each pair, (head_dim / 2,) float32, and a cos/sin factor.

    The factor is 1.0 except for yarn. Same values as transformers' `ROPE_INIT_FUNCTIONS`.

    >>> inverse_frequencies(RopeConfig(theta=100.0), head_dim=4)
    (tensor([1.0000, 0.1000]), 1.0)
    """
    pair = torch.arange(0, head_dim, 2, dtype=torch.float32, device="cpu")
    inv_freq = 1.0 / rope.theta ** (pair / head_dim)
    if rope.kind == "linear":
        return inv_freq / rope.factor, 1.0
    if rope.kind == "llama3":
        return _llama3(inv_freq, rope), 1.0
    if rope.kind == "yarn":
        return _yarn(inv_freq, rope, head_dim), _yarn_attention_factor(rope)
    return inv_freq, 1.0


def _llama3(inv_freq: Tensor, rope: RopeConfig) -> Tensor:
    """Slow the long waves by `factor`, keep the short ones, blend between."""
    turns = rope.original_max_seq_len * inv_freq / (2 * math.pi)  # full turns in the old context
    low, high = rope.low_freq_factor, rope.high_freq_factor
    keep = ((turns - low) / (high - low)).clamp(0, 1)  # 1: as it was, 0: slowed
    return keep * inv_freq + (1 - keep) * inv_freq / rope.factor


def _yarn(inv_freq: Tensor, rope: RopeConfig, head_dim: int) -> Tensor:
    """Like llama3, but the blend is a ramp over the pair's index (Peng et al. 2023)."""

    def pair_that_turns(times: float) -> float:
        wavelength = rope.original_max_seq_len / (times * 2 * math.pi)
        return head_dim * math.log(wavelength) / (2 * math.log(rope.theta))

    first, last = pair_that_turns(rope.beta_fast), pair_that_turns(rope.beta_slow)
    if rope.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    width = last - first if last != first else 0.001
    index = torch.arange(head_dim // 2, dtype=torch.float32, device="cpu")
    slow = ((index - first) / width).clamp(0, 1)  # 0: as it was, 1: slowed
    return (1 - slow) * inv_freq + slow * inv_freq / rope.factor


def _yarn_attention_factor(rope: RopeConfig) -> float:
    def mscale(weight: float = 1.0) -> float:
        return 1.0 if rope.factor <= 1 else 0.1 * weight * math.log(rope.factor) + 1.0

    if rope.attention_factor is not None:
        return rope.attention_factor
    if rope.mscale and rope.mscale_all_dim:
        return mscale(rope.mscale) / mscale(rope.mscale_all_dim)
    return mscale()


class Rope:
    """Cosines and sines for given positions, computed in float32 and cast at the end.

    Not a module and not a buffer: `model.to(torch.bfloat16)` must not round the frequencies.
    """

    def __init__(self, rope: RopeConfig, head_dim: int) -> None:
        self.inv_freq, self.factor = inverse_frequencies(rope, head_dim)

    def cos_sin(self, position_ids: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return cos and sin, each (batch, 1, q_len, head_dim / 2), for ids (batch, q_len)."""
        self.inv_freq = self.inv_freq.to(position_ids.device)
        angle = position_ids[:, None, :, None].float() * self.inv_freq
        return (angle.cos() * self.factor).to(dtype), (angle.sin() * self.factor).to(dtype)


def rotate(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (i, i + head_dim / 2) of (batch, heads, q_len, head_dim) by its angle.

    >>> quarter = torch.zeros(1), torch.ones(1)  # the cosine and sine of 90 degrees
    >>> rotate(torch.tensor([1.0, 0.0]), *quarter)
    tensor([0., 1.])
    """
    first, second = states.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

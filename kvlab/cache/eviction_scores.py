"""Rules that look at positions or at the keys alone: they run in transformers' models too."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.evicting import EvictingLayer


class WindowLayer(EvictingLayer):
    """Keep the newest `budget` tokens.

    >>> layer, prompt = WindowLayer(budget=3), torch.zeros(1, 2, 8, 4)
    >>> keys, values = layer.update(prompt, prompt)
    >>> keys.shape[2], layer.get_seq_length(), layer.kept_positions()[0, 0].tolist()
    (8, 8, [5, 6, 7])
    """

    def __init__(
        self, budget: int, *, positions: str = "kept", inv_freq: Tensor | None = None
    ) -> None:
        super().__init__(budget, positions=positions, inv_freq=inv_freq)

    def choose(self, kept: int) -> Tensor:
        """Return the last places."""
        return torch.arange(kept - self.budget, kept, device=self.device)[None, None]


class SinksLayer(EvictingLayer):
    """Keep the first `num_sink_tokens`, on which much attention rests, and the newest others.

    >>> layer, prompt = SinksLayer(budget=3, num_sink_tokens=1), torch.zeros(1, 2, 8, 4)
    >>> _ = layer.update(prompt, prompt)
    >>> layer.kept_positions()[0, 0].tolist()
    [0, 6, 7]
    """

    def __init__(
        self,
        budget: int,
        *,
        num_sink_tokens: int = 4,
        positions: str = "kept",
        inv_freq: Tensor | None = None,
    ) -> None:
        super().__init__(
            budget, num_sink_tokens=num_sink_tokens, positions=positions, inv_freq=inv_freq
        )

    def choose(self, kept: int) -> Tensor:
        """Return the first places and the last: the sinks never leave the first."""
        places = torch.arange(self.budget, device=self.device)
        places[self.num_sink_tokens :] += kept - self.budget
        return places[None, None]


class KeyNormLayer(EvictingLayer):
    """Keep, in each KV head, the keys of smallest norm: those tend to draw attention."""

    def score(self) -> Tensor:
        """The shorter, the higher. RoPE turns a key and leaves its norm."""
        return -self.keys.float().norm(dim=-1)


class KeyDiffLayer(EvictingLayer):
    """Keep, in each KV head, the keys least like the mean of all held: the most distinct ones."""

    def score(self) -> Tensor:
        """The smaller the cosine with the mean direction, the higher."""
        directions = torch.nn.functional.normalize(self.keys.float(), dim=-1)
        return -cosine_similarity(directions, directions.mean(dim=2, keepdim=True), dim=-1)


class RandomLayer(EvictingLayer):
    """Keep a random choice of all tokens seen, another in each KV head: the rule to beat.

    A token's number follows from `seed`, its position and the head alone. So the choice is the
    same whatever the chunking, in every layer with this seed, and after going back.
    """

    def __init__(
        self,
        budget: int,
        *,
        seed: int = 0,
        num_sink_tokens: int = 0,
        recent: int = 0,
        positions: str = "kept",
        inv_freq: Tensor | None = None,
    ) -> None:
        self.seed = whole_number("seed", seed, minimum=0)
        kept = {"num_sink_tokens": num_sink_tokens, "recent": recent}
        super().__init__(budget, **kept, positions=positions, inv_freq=inv_freq)

    def score(self) -> Tensor:
        """Return a number between 0 and 1 that a token keeps for life."""
        heads = torch.arange(self.num_kv_heads, device=self.slots.device)[None, :, None]
        return uniform(self.slots, heads, self.seed)


def uniform(positions: Tensor, heads: Tensor, seed: int) -> Tensor:
    """Return the numbers in [0, 1) of tokens in heads, of equal shape or broadcast. No state.

    >>> uniform(torch.arange(3), torch.tensor(0), seed=1).tolist() == \
        uniform(torch.arange(3), torch.tensor(0), seed=1).tolist()
    True
    """
    mixed = positions * 0x9E3779B1 + heads * 0x85EBCA77 + (seed % 2**31) * 0xC2B2AE3D + 1
    for _ in range(3):  # multiply and fold: neighbours end far apart
        mixed = (mixed & 0xFFFFFFFF) * 0x2C1B3C6D
        mixed = mixed ^ ((mixed >> 29) & 0x7FFFFFFF)
    return (mixed & 0xFFFFFF).float() / 2**24

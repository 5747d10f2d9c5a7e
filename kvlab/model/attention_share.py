"""How unevenly attention falls: which positions it rests on, summed over all queries of a text.

Measured before any token is dropped. One layer's weights are in memory at a time, and those of
`chunk_size` queries only. A sum favours early positions, which more queries can see; that is the
sum that H2O keeps, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.container import KVCache
from kvlab.cache.contiguous import GrowingLayer
from kvlab.errors import InvalidArgument
from kvlab.model.llama import Llama

TOP_PERCENTS = (1, 5, 20)


@dataclass(frozen=True, eq=False)
class AttentionShare:
    """Attention received by each position, `received` (num_layers, num_heads, tokens), float32.

    Every query hands out 1 in each head, so a head's positions sum to the number of tokens.
    """

    received: Tensor
    num_kv_heads: int

    @property
    def num_tokens(self) -> int:
        """How many positions there are."""
        return self.received.shape[-1]

    def top_share(self, percent: float) -> Tensor:
        """Return the share, 0 to 1, of the `percent` % of positions that get most, in each head.

        Shape (num_layers, num_heads); the number of positions is rounded up.
        """
        count = self.top_count(percent)
        return self.received.topk(count, dim=-1).values.sum(dim=-1) / self.num_tokens

    def top_count(self, percent: float) -> int:
        """Return how many positions are `percent` % of them, rounded up.

        >>> AttentionShare(torch.ones(1, 1, 500), num_kv_heads=1).top_count(1)
        5
        """
        if not 0 < percent <= 100:
            raise InvalidArgument("percent", percent, "must be above 0 and at most 100")
        return math.ceil(round(percent * self.num_tokens / 100, 9))

    def top_shares(self, percents: Sequence[float] = TOP_PERCENTS) -> dict[float, float]:
        """Return the mean share over all layers and heads, for each percentage of positions.

        >>> AttentionShare(torch.ones(1, 1, 100), num_kv_heads=1).top_shares()  # all alike
        {1: 0.01, 5: 0.05, 20: 0.2}
        """
        return {percent: round(float(self.top_share(percent).mean()), 6) for percent in percents}

    def first_share(self, num_tokens: int) -> Tensor:
        """Return the share of the first positions, the sinks, (num_layers, num_heads)."""
        count = whole_number("num_tokens", num_tokens)
        return self.received[..., :count].sum(dim=-1) / self.num_tokens

    def by_kv_head(self) -> Tensor:
        """Return (num_layers, num_kv_heads, tokens): sums over the heads that read a KV head."""
        return self.received.unflatten(1, (self.num_kv_heads, -1)).sum(dim=2)


class _Watching(KVCache):
    """Keeps every token, and adds up the attention that each gets."""

    wants_weights = True

    def __init__(self, num_layers: int, num_tokens: int) -> None:
        super().__init__(GrowingLayer() for _ in range(num_layers))
        self.received: list[Tensor | float] = [0.0] * num_layers
        self.num_tokens = num_tokens

    def observe(self, attention_weights: Tensor, layer_idx: int) -> None:
        """Add one layer's weights of one chunk, (1, num_heads, q_len, kv_len)."""
        got = attention_weights[0].sum(dim=1)
        room = (0, self.num_tokens - got.shape[-1])
        self.received[layer_idx] = self.received[layer_idx] + torch.nn.functional.pad(got, room)


@torch.no_grad()
def attention_share(
    model: Llama, input_ids: Tensor | Sequence[int], *, chunk_size: int = 256
) -> AttentionShare:
    """Run one text of token ids, (tokens,) or (1, tokens), and add up what attention rests on.

    >>> from kvlab.model.config import LlamaConfig
    >>> config = LlamaConfig(num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, hidden_size=32,
    ...                      intermediate_size=64, vocab_size=100, max_seq_len=128)
    >>> attention_share(Llama(config), list(range(50))).received.shape
    torch.Size([2, 4, 50])
    """
    ids = torch.as_tensor(input_ids, device=model.lm_head.weight.device)
    ids = ids[None] if ids.dim() == 1 else ids
    if ids.dim() != 2 or len(ids) != 1 or ids.shape[1] == 0:
        rule = "must be one text of 1 token or more, (tokens,) or (1, tokens)"
        raise InvalidArgument("input_ids", tuple(ids.shape), rule)
    cache = _Watching(model.config.num_layers, ids.shape[1])
    for piece in ids.split(whole_number("chunk_size", chunk_size), dim=1):
        model(piece, cache=cache, last_token_only=True)
    return AttentionShare(torch.stack(cache.received), model.config.num_kv_heads)

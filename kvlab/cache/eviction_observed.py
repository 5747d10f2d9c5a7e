"""Rules that look on while attention works: kvlab's Llama shows them queries or weights.

transformers' models call `update` alone, so there these layers are refused.
"""

from __future__ import annotations

from torch import Tensor

from kvlab.arithmetic.checks import true_or_false, whole_number
from kvlab.cache.evicting import EvictingLayer
from kvlab.cache.kept_tokens import gather_tokens
from kvlab.errors import Unsupported

ONLY_OUR_LLAMA = "it looks on while attention works, and only kvlab's Llama lets it"


class ObservingLayer(EvictingLayer):
    """An evicting layer that drops tokens once it has seen what attention did with them."""

    own_mask_reason = ONLY_OUR_LLAMA

    def __init__(self, budget: int, *, num_sink_tokens: int, recent: int) -> None:
        super().__init__(budget, num_sink_tokens=num_sink_tokens, recent=recent)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Append; refuse where nobody showed what became of the tokens before."""
        if not self.is_observed:
            raise Unsupported(f"{type(self).__name__}: {ONLY_OUR_LLAMA}; nothing was shown to it")
        self.is_observed = False
        return super().store(key_states, value_states)

    def forget(self) -> None:
        """Let go of what was observed."""
        super().forget()
        self.is_observed = True


class HeavyHitterLayer(ObservingLayer):
    """H2O: keep, in each KV head, the tokens that drew most attention so far, and the newest.

    `recent` is half the budget unless given: a new token has had no time to draw any. `scores`,
    (batch, num_kv_heads, kept) float32, are the weights a token got, summed over queries and over
    the query heads that share the KV head. Sums favour old tokens, which more queries have seen;
    `average=True` divides by the number of those queries.
    """

    wants_weights = True
    beside = ("slots", "turned_to", "scores")

    def __init__(
        self,
        budget: int,
        *,
        recent: int | None = None,
        num_sink_tokens: int = 0,
        average: bool = False,
    ) -> None:
        half = whole_number("budget", budget) // 2
        recent = half if recent is None else recent
        super().__init__(budget, num_sink_tokens=num_sink_tokens, recent=recent)
        self.average = true_or_false("average", average)

    def observe(self, attention_weights: Tensor) -> None:
        """Add what each token got, (batch, num_heads, q_len, kv_len), then drop."""
        batch, _, q_len, kv_len = attention_weights.shape
        per_kv_head = attention_weights.float().view(batch, self.num_kv_heads, -1, q_len, kv_len)
        got = per_kv_head.sum(dim=(2, 3))
        if self.scores is not None:
            got[..., : self.scores.shape[2]] += self.scores
        self.scores, self.is_observed = got, True
        self.drop()

    def score(self) -> Tensor:
        """Return the attention drawn so far, or drawn from each query that could give some."""
        return self.scores / (self.cumulative_length - self.slots if self.average else 1)

    def keep(self, index: Tensor) -> None:
        """Keep the scores of the kept."""
        super().keep(index)
        self.scores = None if self.scores is None else gather_tokens(self.scores, index)


class ExpectedLayer(ObservingLayer):
    """Keep, in each KV head, the tokens that coming queries are expected to attend to.

    The queries seen so far give a mean and a covariance per query head; queries drawn from that
    normal distribution would put exp(mean . k / sqrt(d) + k . cov . k / 2d) on key k. The softmax
    of this, times the length of the token's value, is its score: Expected Attention (Devoto et
    al. 2025), save that the past's places stand for the future's in RoPE. Kept beside the tokens:
    head_dim + head_dim**2 float32 for each query head.
    """

    wants_queries = True
    beside = ("slots", "turned_to", "query_sum", "query_squares")

    def __init__(self, budget: int, *, num_sink_tokens: int = 0, recent: int = 0) -> None:
        super().__init__(budget, num_sink_tokens=num_sink_tokens, recent=recent)

    def observe_queries(self, query_states: Tensor) -> None:
        """Add queries, (batch, num_heads, q_len, head_dim), to what is known; then drop."""
        queries = query_states.float()
        total, squares = queries.sum(dim=2), queries.mT @ queries  # (batch, num_heads, ...)
        if self.query_sum is not None:
            total, squares = total + self.query_sum, squares + self.query_squares
        self.query_sum, self.query_squares, self.is_observed = total, squares, True
        self.drop()

    def score(self) -> Tensor:
        """Return the expected weight times the value's length, a mean over the query heads."""
        seen, scale = self.cumulative_length, self.head_dim**-0.5
        mean = self.query_sum / seen  # (batch, num_heads, head_dim)
        cov = self.query_squares / seen - mean[..., None] * mean[..., None, :]
        keys = self.keys.float()[:, :, None]  # (batch, num_kv_heads, 1, kept, head_dim)
        mean, cov = (x.unflatten(1, (self.num_kv_heads, -1)) for x in (mean, cov))
        linear = (keys @ mean[..., None])[..., 0] * scale
        spread = ((keys @ cov) * keys).sum(dim=-1) * scale**2 / 2
        weight = (linear + spread).softmax(dim=-1).mean(dim=2)
        return weight * self.values.float().norm(dim=-1)

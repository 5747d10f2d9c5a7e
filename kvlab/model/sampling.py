"""Choosing the next token from logits: greedy, or drawn with temperature, top-k and top-p.

Draws use a generator of their own on the CPU: the global random state is neither read nor moved,
and equal logits give equal tokens on every device. Left out: beams, penalties.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument


@dataclass
class Sampler:
    """How to choose: temperature 0 is greedy; `top_k` and `top_p` narrow what may be drawn.

    Raises `InvalidArgument` for a negative or infinite temperature, a `top_k` below 1 or a
    `top_p` outside 0 < p <= 1. Without a seed the draws differ from run to run.

    >>> Sampler().pick(torch.tensor([[0.1, 2.0, 0.3]])).tolist()
    [1]
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    generator: torch.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 <= self.temperature < float("inf"):
            rule = "must be a finite number of 0 or more; 0 is greedy"
            raise InvalidArgument("temperature", self.temperature, rule)
        if self.top_k is not None:
            whole_number("top_k", self.top_k)
        if self.top_p is not None and (not _is_number(self.top_p) or not 0 < self.top_p <= 1):
            raise InvalidArgument("top_p", self.top_p, "must be above 0 and at most 1")
        self.generator = torch.Generator("cpu")
        if self.seed is None:
            self.generator.seed()
        else:
            if whole_number("seed", self.seed, minimum=0) >= 2**63:
                raise InvalidArgument("seed", self.seed, "must be below 2**63")
            self.generator.manual_seed(self.seed)

    def pick(self, logits: Tensor) -> Tensor:
        """Return one token id per row, (batch,), for logits (batch, vocab_size).

        Raises `InvalidArgument` where a row holds NaN or infinity: no token is the right one.
        """
        largest = logits.amax(dim=-1)  # NaN where any logit of the row is NaN
        if not bool(largest.isfinite().all()):
            rule = "must be finite: the weights are damaged, or float16 is too narrow for them"
            raise InvalidArgument("largest logits", largest.tolist(), rule)
        if self.temperature == 0:
            return logits.argmax(dim=-1)
        weights = self.probabilities(logits.float().cpu())
        drawn = torch.multinomial(weights, num_samples=1, generator=self.generator)
        return drawn[:, 0].to(logits.device)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return what is drawn from, (batch, vocab_size): temperature, then top-k, then top-p."""
        scores = logits / self.temperature if self.temperature else one_hot_scores(logits)
        scores = scores if self.top_k is None else keep_top_k(scores, self.top_k)
        scores = scores if self.top_p is None else keep_top_p(scores, self.top_p)
        return scores.softmax(dim=-1)


def one_hot_scores(logits: Tensor) -> Tensor:
    """Return scores that leave all probability on the largest logit: the limit of greedy."""
    best = logits.argmax(dim=-1, keepdim=True)
    return torch.full_like(logits, float("-inf")).scatter(-1, best, 0.0)


def keep_top_k(scores: Tensor, k: int) -> Tensor:
    """Set all but the `k` largest scores of each row to -inf; a tie with the k-th stays.

    >>> keep_top_k(torch.tensor([[3.0, 1.0, 2.0]]), 2).tolist()
    [[3.0, -inf, 2.0]]
    """
    kth = scores.topk(min(k, scores.shape[-1]), dim=-1).values[..., -1:]
    return scores.masked_fill(scores < kth, float("-inf"))


def keep_top_p(scores: Tensor, p: float) -> Tensor:
    """Keep the fewest tokens of each row whose probabilities reach `p`; never fewer than one.

    >>> keep_top_p(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.7).exp().round(decimals=1).tolist()
    [[0.5, 0.30000001192092896, 0.0]]
    """
    ordered, order = scores.softmax(dim=-1).sort(dim=-1, descending=True)
    reached_before = ordered.cumsum(dim=-1) - ordered >= p
    return scores.masked_fill(reached_before.scatter(-1, order, reached_before), float("-inf"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

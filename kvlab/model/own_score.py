"""Try an eviction rule that somebody wrote: one score for each token held, nothing else.

The rule sees what heavy-hitter policies see, and no token is protected from it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from kvlab.cache.container import KVCache
from kvlab.cache.eviction_observed import HeavyHitterLayer
from kvlab.errors import InvalidArgument
from kvlab.model.quality import Bench, Quality
from kvlab.model.quality_task import budget_tokens

Score = Callable[[Tensor, Tensor, Tensor], Tensor]
"""score(received, age, key_norm): see `OwnScoreLayer`."""

SEED, SEQUENCES = 9, 4


class OwnScoreLayer(HeavyHitterLayer):
    """Keep, in each KV head, the tokens that `rule(received, age, key_norm)` puts highest.

    All three are float32, (batch, num_kv_heads, kept): the attention a token drew so far, the
    tokens read since it came (itself included, so 1 is the newest), and the length of its key.
    The rule returns numbers of the same shape.
    """

    def __init__(self, budget: int, rule: Score) -> None:
        super().__init__(budget, recent=0)
        self.rule = rule

    def score(self) -> Tensor:
        """Return what the rule says; `InvalidArgument` unless it is a number for each token."""
        age = (self.cumulative_length - self.slots).float().expand_as(self.scores)
        said = self.rule(self.scores.clone(), age.clone(), self.keys.float().norm(dim=-1))
        numbers = torch.as_tensor(said, dtype=torch.float32, device=self.keys.device)
        if numbers.shape != self.scores.shape:
            rule = f"must have one number for each token, {tuple(self.scores.shape)}"
            raise InvalidArgument("score", tuple(numbers.shape), rule)
        if bool(numbers.isnan().any()):
            raise InvalidArgument("score", float("nan"), "must be numbers; NaN has no rank")
        return numbers


def try_score(rule: Score, *, budget: int | str = "12%") -> Quality:
    """Return what `tiny` still answers, on texts of their own, with the rule deciding.

    >>> round(try_score(lambda received, age, key_norm: received / age).recall, 1)
    1.0
    """
    bench = _bench()
    layers, kept = bench.loaded.model.config.num_layers, budget_tokens(budget, bench.task.tokens)
    return bench.measure(lambda: KVCache(OwnScoreLayer(kept, rule) for _ in range(layers)))


def known_score(policy: str, *, budget: int | str = "12%") -> Quality:
    """Return what a policy of the package keeps on the same texts at the same budget."""
    return _bench().measure(policy, budget=budget)


@lru_cache(maxsize=1)
def _bench() -> Bench:
    return Bench("tiny", seed=SEED, num_sequences=SEQUENCES)

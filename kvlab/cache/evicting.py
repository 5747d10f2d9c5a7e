"""Keep a budget of tokens in a model that was trained to see them all: lossy, by a rule.

After each update attention sees what was kept and what is new; then the layer drops down to its
budget. What a rule must say is one number for each token: the higher, the longer it is kept.

| cache name | class and module | options besides `budget` |
|---|---|---|
| `window` | `eviction_scores.WindowLayer` | |
| `sinks` | `eviction_scores.SinksLayer` | `num_sink_tokens=4` |
| `keynorm` | `eviction_scores.KeyNormLayer` | `num_sink_tokens=0`, `recent=0` |
| `keydiff` | `eviction_scores.KeyDiffLayer` | the same |
| `random` | `eviction_scores.RandomLayer` | the same, and `seed=0` |
| `h2o` | `eviction_observed.HeavyHitterLayer` | the same, but half is `recent`; `average=False` |
| `expected` | `eviction_observed.ExpectedLayer` | the same |

All but the last two take `positions="kept"` or `"rerotated"`; the latter needs `inv_freq`, which
a Llama has at `model.rope.inv_freq`. The last two look on while attention works, which only
kvlab's Llama lets them. A budget for each layer: one layer object each, see `budgets`; for each KV
head: `per_head`. Padding is refused: it would be taken for tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.base import KVLayer
from kvlab.cache.contiguous import room_for
from kvlab.cache.kept_tokens import check_keys, count_on, gather_tokens
from kvlab.cache.repositioned import check_positions, turn
from kvlab.errors import InvalidArgument, Unsupported


class EvictingLayer(KVLayer):
    """Hold at most `budget` tokens between updates: those that `score` puts highest.

    The first `num_sink_tokens` of the text and the newest `recent` are kept whatever their score.
    `keys` and `values` are (batch, num_kv_heads, kept, head_dim), oldest first; `slots`, int64,
    says which tokens they are: (batch, num_kv_heads, kept), or 1 in place of a number where all
    rows or heads keep the same. `nbytes` is keys and values alone; `slots`, and what a rule keeps
    beside them, count in `reserved_nbytes`. Raises `InvalidArgument` for a budget below 1 or below
    the tokens that must be kept, and for NaN or packed keys.
    """

    picks_tokens = True
    beside: tuple[str, ...] = ("slots", "turned_to")  # tensors kept beside keys and values

    def __init__(
        self,
        budget: int,
        *,
        num_sink_tokens: int = 0,
        recent: int = 0,
        positions: str = "kept",
        inv_freq: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.budget = whole_number("budget", budget)
        self.num_sink_tokens = whole_number("num_sink_tokens", num_sink_tokens, minimum=0)
        self.recent = whole_number("recent", recent, minimum=0)
        if (protected := num_sink_tokens + recent) > budget:
            rule = f"must be at least {protected}: {num_sink_tokens} sink tokens + {recent} recent"
            raise InvalidArgument("budget", budget, rule)
        self.repositions = check_positions(positions, inv_freq)
        self.inv_freq = inv_freq
        self.forget()

    def score(self) -> Tensor:
        """Return a float for each token held, shaped like `slots`; the lowest go first."""
        raise NotImplementedError

    # -- what the base class asks for -----------------------------------------------------

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Start with no token."""
        self.forget()
        self.keys, self.values = room_for(0, key_states), room_for(0, value_states)
        self.slots = torch.empty(1, 1, 0, dtype=torch.int64, device=key_states.device)
        self.turned_to = self.slots if self.repositions else None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Return what was kept and what is new, then drop down to the budget."""
        check_keys(key_states)
        return super().update(key_states, value_states, *args, **kwargs)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Append; tokens go at once, or once attention was observed."""
        q_len = key_states.shape[2]
        next_position = self.get_next_position()  # asked before anything is appended
        self.slots = self.all_slots(q_len)
        if self.repositions:
            self.turned_to = count_on(self.turned_to, next_position, q_len)
        self.keys = torch.cat([self.keys, key_states], dim=2)
        self.values = torch.cat([self.values, value_states], dim=2)
        visible = self._in_place(self.keys), self.values
        if not self.wants_weights and not self.wants_queries:
            self.drop()
        return visible

    def num_kept(self) -> int:
        """Return how many tokens are held: the budget, or all that were seen if fewer."""
        return self.keys.shape[2] if self.is_initialized else 0

    def held(self) -> tuple[Tensor, Tensor]:
        """Return the keys, as they were turned when they came, and the values."""
        return self.keys, self.values

    def get_next_position(self) -> int:
        """Return the tokens kept where keys are re-rotated, else the tokens seen."""
        return self.num_kept() if self.repositions else self.cumulative_length

    def get_key_slots(self, query_length: int, *, windowed: bool) -> Tensor | None:
        """Return the tokens held and the new ones where distances count and some are gone."""
        is_whole = self.num_kept() == self.cumulative_length
        return self.all_slots(query_length) if windowed and not is_whole else None

    def all_slots(self, query_length: int) -> Tensor:
        """Return the tokens held and `query_length` new ones, shaped like `slots`."""
        return count_on(self.slots, self.cumulative_length, query_length)

    def kept_positions(self) -> Tensor:
        """Return the absolute positions of the tokens held, (batch, num_kv_heads, kept)."""
        if not self.is_initialized:
            return torch.empty(0, 0, 0, dtype=torch.int64)
        return self.slots.expand(self.batch_size, self.num_kv_heads, -1)

    # -- dropping -------------------------------------------------------------------------

    def drop(self) -> None:
        """Let go of the lowest scores, beyond the budget; the order of the tokens stays."""
        if (kept := self.num_kept()) > self.budget:
            self.keep(self.choose(kept))

    def choose(self, kept: int) -> Tensor:
        """Return which of the `kept` tokens stay, (batch or 1, num_kv_heads or 1, budget)."""
        scores = self.score()
        scores = scores.masked_fill(self.slots < self.num_sink_tokens, torch.inf)
        scores[..., kept - self.recent :] = torch.inf
        return scores.topk(self.budget, dim=-1).indices.sort(dim=-1).values

    def keep(self, index: Tensor) -> None:
        """Keep these of the tokens held; `index` is shaped like `slots`."""
        self.keys, self.values = (gather_tokens(x, index) for x in (self.keys, self.values))
        self.slots = gather_tokens(self.slots, index)
        if self.repositions:
            self.turned_to = gather_tokens(self.turned_to, index)

    def _in_place(self, keys: Tensor) -> Tensor:
        """Return keys turned to 0, 1, 2, ...; always from what came, so rounding never adds up."""
        if not self.repositions:
            return keys
        place = torch.arange(keys.shape[2], device=keys.device)
        return turn(keys, place - self.turned_to, self.inv_freq)

    # -- undoing --------------------------------------------------------------------------

    @property
    def is_croppable(self) -> bool:
        """Whether the last tokens can go without a trace: only until one was dropped."""
        return not self._why_not_shorter()

    def keep_first(self, n: int) -> None:
        """Shorten a layer that has dropped nothing yet; refuse where kept tokens are gone."""
        if n > 0 and (reason := self._why_not_shorter()):
            raise Unsupported(f"{type(self).__name__} cannot go back to {n} tokens: {reason}")
        if n == 0:
            self.allocate(self.keys, self.values)
        else:
            self.keep(torch.arange(n, device=self.device)[None, None])

    def _why_not_shorter(self) -> str:
        if self.wants_weights or self.wants_queries:
            return "what it saw of the later tokens is in its scores"
        gone = self.cumulative_length - self.num_kept()
        return f"{gone} tokens were dropped, and some of them would be kept" if gone else ""

    def take_rows(self, rows: Tensor) -> None:
        """Reorder all that is held; what all rows share stays as it is."""
        self.keys, self.values = self.keys[rows], self.values[rows]
        for name in self.beside:
            numbers = getattr(self, name)
            if numbers is not None and len(numbers) > 1:
                setattr(self, name, numbers[rows])

    def reset(self) -> None:
        """Become as new: no tokens, no memory."""
        super().reset()
        self.forget()

    def forget(self) -> None:
        """Let go of all that is kept beside keys and values."""
        for name in self.beside:
            setattr(self, name, None)

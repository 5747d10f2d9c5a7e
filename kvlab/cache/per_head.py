"""KV heads that keep different numbers of tokens: one evicting layer for each head.

Attention wants one tensor for all heads, so what the heads hold is filled up to the longest for
the time of one call. Memory holds the kept tokens alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from kvlab.cache.base import KVLayer
from kvlab.cache.evicting import EvictingLayer
from kvlab.cache.kept_tokens import check_keys
from kvlab.errors import InvalidArgument, Unsupported


class PerHeadLayer(KVLayer):
    """One evicting layer for each KV head, in their order, each with a budget of its own.

    >>> from kvlab.cache.eviction_scores import KeyNormLayer
    >>> layer = PerHeadLayer([KeyNormLayer(budget=2), KeyNormLayer(budget=5)])
    >>> prompt = torch.zeros(1, 2, 8, 4)
    >>> _ = layer.update(prompt, prompt)
    >>> layer.nbytes == 2 * (2 + 5) * 4 * 4  # K and V x kept tokens of both heads x head_dim x 4
    True
    """

    picks_tokens = True
    own_mask_reason = "its KV heads keep different numbers of tokens, which takes a mask for each"

    def __init__(self, heads: Sequence[EvictingLayer]) -> None:
        super().__init__()
        self.heads = list(heads)
        if not self.heads or any(not isinstance(head, EvictingLayer) for head in self.heads):
            raise InvalidArgument("heads", heads, "must be one evicting layer for each KV head")
        if any(head.repositions for head in self.heads):
            raise Unsupported(
                "positions='rerotated': KV heads of one layer share the next position"
            )
        self.wants_weights = any(head.wants_weights for head in self.heads)
        self.wants_queries = any(head.wants_queries for head in self.heads)

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Check that there is a layer for each KV head; each makes its own room."""
        if key_states.shape[1] != len(self.heads):
            rule = f"must be {key_states.shape[1]} layers, one for each KV head"
            raise InvalidArgument("heads", f"{len(self.heads)} layers", rule)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Let each head store its own; fill up what they return to one length."""
        pairs = zip(key_states.split(1, dim=1), value_states.split(1, dim=1), strict=True)
        stored = [head.update(*pair) for head, pair in zip(self.heads, pairs, strict=True)]
        length = max(keys.shape[2] for keys, _ in stored)
        keys, values = (
            torch.cat([pad(x, (0, 0, 0, length - x.shape[2])) for x in side], dim=1)
            for side in zip(*stored, strict=True)
        )
        return keys, values  # (batch, num_kv_heads, longest, head_dim)

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Refuse unfit keys before any head has stored one."""
        check_keys(key_states)
        return super().update(key_states, value_states, *args, **kwargs)

    def get_key_slots(self, query_length: int, *, windowed: bool) -> Tensor | None:
        """Return the tokens of each head, -1 where a shorter one is filled up."""
        if all(head.num_kept() == self.cumulative_length for head in self.heads):
            return None
        return self._filled_up([head.all_slots(query_length) for head in self.heads])

    def kept_positions(self) -> Tensor:
        """Return the absolute positions held, (batch, num_kv_heads, longest), -1 to fill up."""
        return self._filled_up([head.kept_positions() for head in self.heads])

    def _filled_up(self, slots: list[Tensor]) -> Tensor:
        length = max(part.shape[2] for part in slots)
        batch = max(part.shape[0] for part in slots)
        rows = [pad(part, (0, length - part.shape[2]), value=-1) for part in slots]
        return torch.cat([row.expand(batch, -1, -1) for row in rows], dim=1)

    def num_kept(self) -> int:
        """Return the most tokens that any head holds."""
        return max(head.num_kept() for head in self.heads)

    def held(self) -> tuple[Tensor, ...]:
        """Return the keys and values of every head, (batch, 1, kept, head_dim) each."""
        return tuple(tensor for head in self.heads for tensor in head.held())

    def observe(self, attention_weights: Tensor) -> None:
        """Show each head the weights of the query heads that read it, without the filling."""
        per_head = attention_weights.unflatten(1, (self.num_kv_heads, -1)).unbind(dim=1)
        for head, weights in zip(self.heads, per_head, strict=True):
            head.observe(weights[..., : head.num_kept()])

    def observe_queries(self, query_states: Tensor) -> None:
        """Show each head the queries that read it."""
        per_head = query_states.unflatten(1, (self.num_kv_heads, -1)).unbind(dim=1)
        for head, queries in zip(self.heads, per_head, strict=True):
            head.observe_queries(queries)

    # -- all heads alike ------------------------------------------------------------------

    @property
    def is_croppable(self) -> bool:
        """Whether the last tokens can go without a trace, in every head."""
        return all(head.is_croppable for head in self.heads)

    def keep_first(self, n: int) -> None:
        """Shorten every head, or none."""
        for head in sorted(self.heads, key=lambda head: head.is_croppable):
            head.truncate_to(n)  # one that refuses comes first

    def take_rows(self, rows: Tensor) -> None:
        """Reorder the rows of every head."""
        for head in self.heads:
            head.select_rows(rows)

    def reset(self) -> None:
        """Become as new: no tokens, no memory."""
        super().reset()
        for head in self.heads:
            head.reset()

    def snapshot(self) -> dict[str, object]:
        """Return what `restore` needs, of this layer and of its heads."""
        return {"layer": super().snapshot(), "heads": [head.snapshot() for head in self.heads]}

    def restore(self, snapshot: dict[str, object]) -> None:
        """Become again what the layer and its heads were at `snapshot`."""
        super().restore(snapshot["layer"])
        for head, state in zip(self.heads, snapshot["heads"], strict=True):
            head.restore(state)

    def copy_storage(self) -> None:
        """Move to heads of its own."""
        self.heads = [head.clone() for head in self.heads]

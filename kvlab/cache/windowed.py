"""The cache of a layer that was trained with a sliding window: smaller, and exact.

What a windowed layer can no longer see need not be kept. Not to be confused with `WindowLayer`
(`eviction_scores`), which cuts the same way into a layer that was trained to see everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.base import KVLayer
from kvlab.cache.container import KVCache
from kvlab.cache.contiguous import GrowingLayer, room_for
from kvlab.errors import Unsupported


class SlidingWindowLayer(KVLayer):
    """Keep the past tokens that the next query can still see.

    `sliding_window` is W tokens. In one convention, transformers', W counts the query's own token,
    so W - 1 past ones are kept; in the other (`includes_self=False`) all W lie in the past. Tokens
    seen, tokens kept and the next position are three numbers: 20, 7 and 20 here.

    >>> layer, prompt = SlidingWindowLayer(8), torch.zeros(1, 2, 20, 4)
    >>> _ = layer.update(prompt, prompt)
    >>> layer.get_seq_length(), layer.num_kept(), layer.get_next_position()
    (20, 7, 20)
    """

    is_sliding = True

    def __init__(self, sliding_window: int, *, includes_self: bool = True) -> None:
        super().__init__()
        self.sliding_window = whole_number("sliding_window", sliding_window)
        self.num_past = sliding_window - 1 if includes_self else sliding_window

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Start with no token."""
        self.keys, self.values = room_for(0, key_states), room_for(0, value_states)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Return what was kept and what is new; then let go of what no later query sees.

        The first of several new queries still sees W - 1 tokens before it, whatever the chunking.
        """
        keys = torch.cat([self.keys, key_states], dim=2)
        values = torch.cat([self.values, value_states], dim=2)
        self.keys, self.values = self._newest(keys), self._newest(values)
        return keys, values

    def _newest(self, states: Tensor) -> Tensor:
        """Return the last tokens in memory of their own: a view would hold on to all."""
        first = max(0, states.shape[2] - self.num_past)
        return states[:, :, first:].clone() if first else states

    def num_kept(self) -> int:
        """Return how many tokens are held: W - 1 (or W), or all that were seen if fewer."""
        return self.keys.shape[2] if self.is_initialized else 0

    def held(self) -> tuple[Tensor, Tensor]:
        """Return the keys and values held, oldest first."""
        return self.keys, self.values

    @property
    def is_croppable(self) -> bool:
        """Whether the last tokens can go without a trace: until the first has left the window."""
        return self.num_kept() == self.cumulative_length

    def keep_first(self, n: int) -> None:
        """Shorten a layer whose window is not yet full; 0 always works."""
        if n > 0 and not self.is_croppable:
            gone = self.cumulative_length - self.num_kept()
            raise Unsupported(
                f"SlidingWindowLayer cannot go back to {n} tokens: {gone} have left the window,"
                " and some of them would be back in it"
            )
        self.keys, self.values = self.keys[:, :, :n], self.values[:, :, :n]

    def take_rows(self, rows: Tensor) -> None:
        """Reorder keys and values alike, into new tensors."""
        self.keys, self.values = self.keys[rows], self.values[rows]


def windowed_cache(windows: Sequence[int | None], *, includes_self: bool = True) -> KVCache:
    """Return the exact cache of a model whose layers have these windows; None keeps everything.

    >>> windowed_cache([4, None])  # LlamaConfig.layer_windows
    KVCache(2 x SlidingWindowLayer/GrowingLayer, 0 tokens, 0 bytes held, 0 reserved)
    """
    return KVCache(
        GrowingLayer()
        if window is None
        else SlidingWindowLayer(window, includes_self=includes_self)
        for window in windows
    )

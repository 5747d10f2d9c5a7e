"""Which channels of a real model's keys are far larger than the others, layer by layer.

One such channel sets the scale of its whole token, or tensor, and leaves few steps for the rest:
why keys are quantised by channel. Keys are those of the cache, after RoPE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kvlab.cache import make_cache
from kvlab.errors import InvalidArgument
from kvlab.model.llama import Llama
from kvlab.model.phases import prefill

Floats = NDArray[np.float64]


class Outlier(NamedTuple):
    """One channel that stands out: where it is (layers from 1) and how far, in medians."""

    layer: int
    kv_head: int
    channel: int
    ratio: float


@dataclass(frozen=True, eq=False)
class KeyOutliers:
    """The largest |K| of every channel, (num_layers, num_kv_heads, head_dim); or of values, |V|.

    >>> found = KeyOutliers(np.array([[[1.0, 2.0, 30.0, 2.0]]]))
    >>> found.above(4)
    [Outlier(layer=1, kv_head=0, channel=2, ratio=15.0)]
    """

    largest: Floats

    @property
    def median(self) -> Floats:
        """The median over the channels of a head, (num_layers, num_kv_heads)."""
        return np.median(self.largest, axis=-1)

    @property
    def ratio(self) -> Floats:
        """Each channel against the median of its head, (num_layers, num_kv_heads, head_dim)."""
        return self.largest / np.maximum(self.median, np.finfo(np.float32).tiny)[..., None]

    @property
    def worst(self) -> Floats:
        """The largest ratio of each head, (num_layers, num_kv_heads)."""
        return self.ratio.max(axis=-1)

    def above(self, ratio: float = 4.0) -> list[Outlier]:
        """Return the channels more than `ratio` times their head's median, the farthest first."""
        places = np.argwhere(self.ratio > ratio).tolist()
        found = [
            Outlier(layer + 1, head, channel, float(self.ratio[layer, head, channel]))
            for layer, head, channel in places
        ]
        return sorted(found, key=lambda outlier: -outlier.ratio)


def key_outliers(model: Llama, ids: Tensor | Sequence[int], *, part: str = "keys") -> KeyOutliers:
    """Run (batch, tokens) ids through a model; return how large each channel of its keys became.

    `part` may be "values", to compare: they have few such channels.
    """
    if part not in ("keys", "values"):
        raise InvalidArgument("part", part, "must be keys or values")
    cache = make_cache("growing", num_layers=model.config.num_layers)
    prefill(model, ids, cache)
    side = ("keys", "values").index(part)
    largest = [layer.held()[side].abs().amax((0, 2)) for layer in cache.layers]
    return KeyOutliers(torch.stack(largest).double().cpu().numpy())

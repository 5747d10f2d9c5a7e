"""The toy's mistakes with positions and masks, made in a real Llama: none raises an error.

Each consumes the last token of a text rightly and wrongly, and says in which layer the keys and
values first part. Whoever uses the model's own defaults makes none of them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab.cache import make_cache
from kvlab.model.inspect_cache import CacheDifference, compare_caches

if TYPE_CHECKING:
    from kvlab.cache import KVCache
    from kvlab.model.load import LoadedModel

Run = tuple["KVCache", Tensor]
NOISE = 1e-3
"""Differences below this are rounding: equal distances reached by other angles."""


@dataclass(frozen=True, eq=False)
class LlamaMistake:
    """A mistake: the tokens predicted, and where the caches differ, padding left out."""

    name: str
    right_token: str
    wrong_token: str
    logit_difference: float
    difference: CacheDifference

    @property
    def breaks(self) -> dict[str, int | None]:
        """The first layer, counted from 1, in which each part of the cache differs, else None."""
        found: dict[str, int | None] = {}
        for where, places in (("prompt", slice(None, -1)), ("new", slice(-1, None))):
            for part in ("keys", "values"):
                largest = getattr(self.difference, part)[:, places].max(axis=1)
                (layers,) = (largest > NOISE).nonzero()
                found[f"{where} {part}"] = int(layers[0]) + 1 if len(layers) else None
        return found


def wrong_offset(loaded: "LoadedModel", text: str) -> LlamaMistake:
    """Give the new token position 0, as if the cache were empty."""
    ids = loaded.encode(text)
    wrong = _consume(loaded, ids, position_ids=torch.zeros_like(ids[:, -1:]))
    return _mistake(loaded, "wrong position offset", _consume(loaded, ids), wrong)


def square_mask(loaded: "LoadedModel", text: str) -> LlamaMistake:
    """Give the new token row 0 of a square mask: it sees key 0, and itself as always."""
    ids = loaded.encode(text)
    mask = torch.zeros_like(ids)
    mask[:, 0] = mask[:, -1] = 1
    place = torch.full_like(ids[:, -1:], ids.shape[1] - 1)
    wrong = _consume(loaded, ids, attention_mask=mask, position_ids=place)
    return _mistake(loaded, "square mask on one query", _consume(loaded, ids), wrong)


def left_padding(loaded: "LoadedModel", text: str, *, pad: int = 4) -> LlamaMistake:
    """Prefill a left-padded row with slots for positions, then let the row count its own tokens."""
    ids = loaded.encode(text)
    padded = torch.cat([ids[:, :1].expand(-1, pad), ids], dim=1)  # hidden, so any token will do
    mask = torch.ones_like(padded)
    mask[:, :pad] = 0
    slots = torch.arange(padded.shape[1] - 1, device=ids.device)[None]
    right = _consume(loaded, padded, attention_mask=mask)
    wrong = _consume(loaded, padded, attention_mask=mask, prefill_positions=slots)
    return _mistake(loaded, "left padding without positions", right, wrong, pad)


LLAMA_MISTAKES = (wrong_offset, square_mask, left_padding)


@torch.no_grad()
def _consume(
    loaded: "LoadedModel",
    ids: Tensor,
    *,
    attention_mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    prefill_positions: Tensor | None = None,
) -> Run:
    """Prefill all but the last token, then consume the last; return cache and logits.

    A mask that comes with a position is the new token's alone: the prefill is the usual one.
    """
    model, cache = loaded.model, make_cache("growing", num_layers=loaded.model.config.num_layers)
    of_padding = attention_mask is not None and position_ids is None
    seen = attention_mask[:, :-1] if of_padding else None
    model(ids[:, :-1], cache=cache, attention_mask=seen, position_ids=prefill_positions)
    logits = model(
        ids[:, -1:], cache=cache, attention_mask=attention_mask, position_ids=position_ids
    )
    return cache, logits[0, -1].float()


def _mistake(
    loaded: "LoadedModel", name: str, right: Run, wrong: Run, pad: int = 0
) -> LlamaMistake:
    (good, good_logits), (bad, bad_logits) = right, wrong
    tokens = (loaded.decode([int(logits.argmax())]) for logits in (good_logits, bad_logits))
    apart = float((good_logits - bad_logits).abs().max())
    return LlamaMistake(name, *tokens, apart, compare_caches(good, bad, positions=slice(pad, None)))

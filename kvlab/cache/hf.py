"""The adapter: with `hf_caches.py` all that knows transformers' cache names; they moved often.

Two parts: the two base classes that let our caches run inside transformers' models, and the calls
that hand a cache to such a model. No storage idea of ours is here.
"""

from __future__ import annotations

import inspect
import operator
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.lengths import row_numbers
from kvlab.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LAYER_METHODS = frozenset(
    ["lazy_initialization", "update", "get_mask_sizes", "get_seq_length", "get_max_length"]
)
PADDING_RULE = "a padded batch cannot use a cache that picks which tokens it keeps"


def layer_protocol_difference() -> str:
    """Return one sentence saying how this transformers differs from what kvlab expects, or "".

    >>> layer_protocol_difference()
    ''
    """
    wanted = set(CacheLayerMixin.__abstractmethods__)
    if wanted == LAYER_METHODS:
        return ""
    added, gone = sorted(wanted - LAYER_METHODS), sorted(LAYER_METHODS - wanted)
    return (
        "transformers asks other methods of a cache layer than kvlab was written for"
        f" (new: {', '.join(added) or 'none'}; gone: {', '.join(gone) or 'none'});"
        " install the transformers version that requirements.txt names"
    )


class LayerAdapter(CacheLayerMixin):
    """Translate the names transformers calls on a layer into the names of `KVLayer`."""

    is_sliding = False
    is_compileable = False
    is_croppable = False  # newer transformers ask: does truncate_to leave no trace?

    def get_max_length(self) -> int:
        """Return the capacity in tokens, or -1 where there is none."""
        return -1 if self.capacity is None else self.capacity

    def crop(self, tokens_to_remove: int) -> None:
        """Drop tokens from the end; transformers passes their number as 0 or below."""
        self.truncate_to(self.get_seq_length() - tokens_dropped(tokens_to_remove))

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the batch for beam search."""
        self.batch_select_indices(row_numbers("beam_idx", beam_idx))

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each sequence of the batch `repeats` times, copies side by side."""
        whole_number("repeats", repeats)
        if self.is_initialized:
            self.select_rows(torch.arange(self.batch_size).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these sequences of the batch, in this order."""
        row_numbers("indices", indices)
        if self.is_initialized:
            self.select_rows(indices)

    def offload(self) -> None:
        """Refuse: this storage stays on its device."""
        raise Unsupported(f"{type(self).__name__} cannot be offloaded")

    prefetch = offload


class CacheAdapter(Cache):
    """transformers' list of layers, with its `crop` led to `truncate_to`."""

    @property
    def is_croppable(self) -> bool:
        """Whether every layer forgets its last tokens without a trace; older versions lack it."""
        return all(layer.is_croppable for layer in self.layers)

    def crop(self, tokens_to_remove: int) -> None:
        """Drop tokens from the end; transformers passes their number as 0 or below."""
        self.truncate_to(int(self.get_seq_length()) - tokens_dropped(tokens_to_remove))


def tokens_dropped(tokens_to_remove: int | Tensor) -> int:
    """Return how many tokens transformers wants gone: it says so with a number below 0.

    Some versions say it with a 0-d tensor; a length shared by layers must not become one.

    >>> tokens_dropped(-3)
    3
    """
    try:
        number = operator.index(tokens_to_remove)
    except TypeError:
        number = None
    if number is None or number > 0 or isinstance(tokens_to_remove, bool):
        rule = "must be 0 or below, a whole number"
        raise InvalidArgument("tokens_to_remove", tokens_to_remove, rule)
    return -number


# -- handing a cache to a transformers model ---------------------------------------------


def cache_keyword(model: PreTrainedModel) -> str:
    """Return the keyword for a cache: `cache` since transformers 5.24, else `past_key_values`."""
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def call_model(
    model: PreTrainedModel, input_ids: Tensor, *, cache: Cache | None = None, **options: object
) -> tuple[Tensor, Cache | None]:
    """Run one forward pass of a transformers model; return (logits, cache).

    `input_ids` is (batch, q_len), the logits are (batch, q_len, vocab_size). Without a cache
    nothing is remembered. A cache that re-rotates its keys gets its `position_ids` here.
    """
    _refuse_padding(cache, options.get("attention_mask"))
    keyword = cache_keyword(model)
    if hasattr(cache, "get_next_position") and "position_ids" not in options:
        start = cache.get_next_position()
        if start != cache.get_seq_length():
            places = torch.arange(start, start + input_ids.shape[1], device=input_ids.device)
            options["position_ids"] = places[None]
    options |= {keyword: cache, "use_cache": cache is not None}
    return model(input_ids, **options).logits, cache


def generate_with(
    model: PreTrainedModel,
    input_ids: Tensor,
    *,
    max_new_tokens: int,
    cache: Cache | None = None,
    seed: int | None = None,
    **options: object,
) -> Tensor:
    """Let transformers' `generate` write with this cache; return prompt and new tokens.

    Shape (batch, prompt + new). Greedy unless `options` say otherwise: `do_sample=True`,
    `num_beams=3`, `attention_mask=...`. `seed` fixes the sampling and is forgotten afterwards.
    """
    _refuse_padding(cache, options.get("attention_mask"))
    settings: dict[str, object] = {"do_sample": False, "pad_token_id": 0, "use_cache": False}
    settings["attention_mask"] = torch.ones_like(input_ids)
    if cache is not None:
        settings |= {cache_keyword(model): cache, "use_cache": True}
    with torch.random.fork_rng(enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        return model.generate(input_ids, max_new_tokens=max_new_tokens, **settings | options)


def _refuse_padding(cache: Cache | None, attention_mask: object) -> None:
    """Refuse what transformers runs without a word: it takes kept tokens for neighbours."""
    padded = isinstance(attention_mask, Tensor) and attention_mask.ndim == 2
    if padded and getattr(cache, "picks_tokens", False) and not bool(attention_mask.all()):
        raise Unsupported(f"attention_mask: {PADDING_RULE}")

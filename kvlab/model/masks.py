"""Where new tokens stand, what they may look at, and attention with its weights in the open.

A key's slot and its position are two things: the slot is its place in the sequence, padding
included, and decides who sees whom; the position counts a row's own tokens, and turns RoPE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.config import LlamaConfig

if TYPE_CHECKING:
    from kvlab.cache.protocol import KVCacheProtocol


def row_positions(input_ids: Tensor, past: int, attention_mask: Tensor | None) -> Tensor:
    """Return the position of each new token, (batch or 1, q_len), counting a row's own tokens.

    A padding token gets some position too (0 at the left); nobody looks at it.

    >>> mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    >>> row_positions(torch.zeros(2, 2), 2, mask).tolist()
    [[0, 1], [2, 3]]
    """
    if attention_mask is None:
        return torch.arange(past, past + input_ids.shape[1], device=input_ids.device)[None]
    return (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, past:]


def layer_masks(
    config: LlamaConfig,
    input_ids: Tensor,
    past: int,
    attention_mask: Tensor | None,
    cache: KVCacheProtocol | None,
) -> list[Tensor | None]:
    """Return one mask per layer, asked before any layer is written; equal ones are one tensor.

    Layers may have windows, keep different numbers of tokens, or other tokens in every KV head.
    Raises `Unsupported` for padding in a cache that picks the tokens it keeps.
    """
    if attention_mask is not None and getattr(cache, "picks_tokens", False):
        raise Unsupported(f"attention_mask: {PADDING_RULE}")
    q_len, made = input_ids.shape[1], {}
    masks: list[Tensor | None] = []
    for layer_idx, window in enumerate(config.layer_windows):
        size = (q_len, 0) if cache is None else tuple(cache.get_mask_sizes(q_len, layer_idx))
        slots = None
        if hasattr(cache, "get_key_slots"):
            slots = cache.get_key_slots(q_len, layer_idx, windowed=window is not None)
        if slots is not None:
            visible = visible_slots(slots.to(input_ids.device), past, q_len, window)
            queries = config.queries_per_kv_head if visible.shape[1] > 1 else 1
            masks.append(visible.repeat_interleave(queries, dim=1))
            continue
        if (size, window) not in made:
            made[size, window] = visible_keys(input_ids, past, *size, attention_mask, window)
        masks.append(made[size, window])
    return masks


PADDING_RULE = "a padded batch cannot use a cache that picks which tokens it keeps"


def visible_keys(
    input_ids: Tensor,
    past: int,
    kv_len: int,
    kv_offset: int,
    attention_mask: Tensor | None,
    window: int | None = None,
) -> Tensor | None:
    """Return True where a query may look, (batch or 1, 1, q_len, kv_len), or None: plain causal.

    Key 0 stands in slot `kv_offset`. A query sees the last `window` slots, its own included; None
    sees all. A token always sees itself, so no row is empty, not even a padding row: an empty row
    is 0 in one kernel and NaN in another.

    >>> visible_keys(torch.zeros(1, 1), 4, 8, 0, None).int().tolist()  # new=1, past=4, 8 slots
    [[[[1, 1, 1, 1, 1, 0, 0, 0]]]]
    """
    q_len, device = input_ids.shape[1], input_ids.device
    no_empty_slot = kv_offset + kv_len == past + q_len
    all_in_reach = window is None or past + q_len - kv_offset <= window
    plain = attention_mask is None and no_empty_slot and all_in_reach
    if plain and (q_len == 1 or q_len == kv_len):
        return None
    key_slot = torch.arange(kv_offset, kv_offset + kv_len, device=device)
    visible = visible_slots(key_slot[None, None], past, q_len, window)
    if attention_mask is None:
        return visible
    if kv_offset and window is None:  # which tokens were dropped? A window drops the oldest alone
        raise Unsupported("a padded batch cannot use a cache that has dropped tokens")
    is_token = attention_mask.new_zeros((len(attention_mask), kv_len), dtype=torch.bool)
    is_token[:, : past + q_len - kv_offset] = attention_mask[:, kv_offset:].bool()
    query_slot = torch.arange(past, past + q_len, device=device)[:, None]
    return visible & is_token[:, None, None] | (key_slot == query_slot)


def visible_slots(key_slot: Tensor, past: int, q_len: int, window: int | None) -> Tensor:
    """Return True where query i, in slot past + i, may look: (batch, heads, q_len, kv_len).

    `key_slot` is (batch, heads, kv_len); a slot below 0 holds no token.

    >>> visible_slots(torch.tensor([[[0, -1, 5, 6]]]), past=6, q_len=1, window=None).tolist()
    [[[[True, False, True, True]]]]
    """
    key_slot = key_slot[:, :, None]
    query_slot = torch.arange(past, past + q_len, device=key_slot.device)[:, None]
    visible = (key_slot >= 0) & (key_slot <= query_slot)
    return visible if window is None else visible & (key_slot > query_slot - window)


def attend_with_weights(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Attend step by step; return the mix and the weights (batch, num_heads, q_len, kv_len).

    `mask` is True where a query may look; None means causal. A row that sees nothing gives 0.

    >>> one = torch.ones(1, 1, 2, 2)
    >>> attend_with_weights(one, one, one, None)[1]
    tensor([[[[1.0000, 0.0000],
              [0.5000, 0.5000]]]])
    """
    (batch, _, q_len, head_dim), kv_len = query.shape, key.shape[2]
    if mask is None:
        mask = torch.ones(q_len, kv_len, dtype=torch.bool, device=query.device).tril(kv_len - q_len)
    per_kv_head = query.reshape(batch, key.shape[1], -1, q_len, head_dim)
    scores = per_kv_head @ key.unsqueeze(2).transpose(-1, -2) / head_dim**0.5
    scores = scores.float().flatten(1, 2).masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    grouped = weights.to(value.dtype).view(batch, key.shape[1], -1, q_len, kv_len)
    return (grouped @ value.unsqueeze(2)).flatten(1, 2), weights


def check_inputs(
    config: LlamaConfig,
    input_ids: Tensor,
    past: int,
    attention_mask: Tensor | None,
    position_ids: Tensor | None,
    next_position: int,
) -> None:
    """Raise `InvalidArgument` naming the first input that the model cannot take."""
    shape = tuple(input_ids.shape)
    if len(shape) != 2 or 0 in shape:
        raise InvalidArgument("input_ids", shape, "must be (batch, q_len) with 1 token or more")
    if input_ids.is_floating_point() or input_ids.dtype == torch.bool:
        raise InvalidArgument("input_ids", input_ids.dtype, "must be whole numbers")
    low, high = (int(limit) for limit in input_ids.aminmax())
    if low < 0 or high >= config.vocab_size:
        rule = f"token ids run from 0 to {config.vocab_size - 1}"
        raise InvalidArgument("input_ids", low if low < 0 else high, rule)
    _check_shape("attention_mask", attention_mask, (shape[0], past + shape[1]))
    _check_shape("position_ids", position_ids, shape)
    last = next_position + shape[1] - 1 if position_ids is None else int(position_ids.max())
    if last >= config.max_seq_len:
        rule = f"the model has {config.max_seq_len} positions"
        raise InvalidArgument("number of tokens", last + 1, rule)


def _check_shape(argument: str, given: Tensor | None, expected: tuple[int, ...]) -> None:
    if given is not None and tuple(given.shape) != expected:
        raise InvalidArgument(argument, tuple(given.shape), f"its shape must be {expected}")

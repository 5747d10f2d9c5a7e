"""Small tools of the evicting layers: take some of the tokens held, and refuse unfit keys."""

from __future__ import annotations

import torch
from torch import Tensor

from kvlab.errors import InvalidArgument


def gather_tokens(numbers: Tensor, index: Tensor) -> Tensor:
    """Return the tokens at `index`, (batch or 1, num_kv_heads or 1, kept), in new memory.

    `numbers` is (batch or 1, num_kv_heads or 1, tokens) or has one more dimension.

    >>> gather_tokens(torch.tensor([[[5, 6, 7]]]), torch.tensor([[[0, 2], [1, 2]]])).tolist()
    [[[5, 7], [6, 7]]]
    """
    if index.shape[:2] == (1, 1):
        return numbers.index_select(2, index[0, 0])
    lead = torch.broadcast_shapes(numbers.shape[:2], index.shape[:2])
    numbers, index = numbers.expand(*lead, *numbers.shape[2:]), index.expand(*lead, -1)
    if numbers.dim() == 4:
        index = index[..., None].expand(*index.shape, numbers.shape[3])
    return numbers.gather(2, index)


def count_on(numbers: Tensor, start: int, q_len: int) -> Tensor:
    """Return `numbers`, (batch or 1, num_kv_heads or 1, tokens), with `q_len` more from `start` on.

    >>> count_on(torch.tensor([[[0, 3]]]), start=8, q_len=2).tolist()
    [[[0, 3, 8, 9]]]
    """
    added = torch.arange(start, start + q_len, device=numbers.device)
    return torch.cat([numbers, added.expand(*numbers.shape[:2], -1)], dim=2)


def check_keys(key_states: Tensor) -> None:
    """Raise `InvalidArgument` for keys that can't be scored or turned.

    >>> check_keys(torch.tensor([1.0, torch.nan]))
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: key_states=nan: an evicting cache ranks keys, and NaN has no rank
    """
    if not key_states.is_floating_point() or key_states.element_size() < 2:
        rule = "an evicting cache takes keys of 16 bits or more; packed keys can't be re-rotated"
        raise InvalidArgument("key_states", key_states.dtype, rule)
    if bool(key_states.isnan().any()):
        rule = "an evicting cache ranks keys, and NaN has no rank"
        raise InvalidArgument("key_states", float("nan"), rule)

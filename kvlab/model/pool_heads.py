"""Make a model with fewer KV heads out of one with more: each group of heads becomes its mean.

Query heads are left as they are. Query head h reads KV head h // queries_per_kv_head, so KV heads
that stand beside each other are pooled, and every query head then reads the mean of the group that
its own KV head was in (Ainslie and others, 2023). The result is a start for a short uptraining;
as it stands it has lost what the heads of a group had to themselves.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.llama import Llama

KV_TENSORS = ("k_proj.weight", "v_proj.weight", "k_proj.bias", "v_proj.bias")


def pool_kv_heads(model: Llama, num_kv_heads: int) -> Llama:
    """Return a new model of `num_kv_heads` KV heads, each the mean of a group of `model`'s.

    With the same number of heads it is the same model. Raises `InvalidArgument` for a number that
    does not divide the KV heads there are.

    >>> from kvlab.model.config import LlamaConfig
    >>> config = LlamaConfig(num_layers=1, num_heads=4, num_kv_heads=4, head_dim=2, hidden_size=8,
    ...                      intermediate_size=8, vocab_size=10, max_seq_len=32)
    >>> pool_kv_heads(Llama(config), 1).config.queries_per_kv_head
    4
    """
    have = model.config.num_kv_heads
    if have % whole_number("num_kv_heads", num_kv_heads):
        raise InvalidArgument("num_kv_heads", num_kv_heads, f"must divide the KV heads, {have}")
    return _rebuild(model, num_kv_heads, lambda heads: mean_of_groups(heads, num_kv_heads))


def repeat_kv_heads(model: Llama, num_kv_heads: int) -> Llama:
    """Return a new model that holds each KV head of `model` several times, and answers the same.

    This is what sharing means, written out: a GQA model is an MHA model whose groups hold equal
    heads. Raises `InvalidArgument` for a number that is no multiple of the KV heads there are, or
    that the query heads can't be shared among.
    """
    have = model.config.num_kv_heads
    if whole_number("num_kv_heads", num_kv_heads) % have:
        raise InvalidArgument("num_kv_heads", num_kv_heads, f"must be a multiple of {have}")
    copies = num_kv_heads // have
    return _rebuild(model, num_kv_heads, lambda heads: heads.repeat_interleave(copies, dim=0))


def mean_of_groups(heads: Tensor, num_groups: int) -> Tensor:
    """Return the mean of each group of neighbours, (num_groups, ...) of (num_kv_heads, ...).

    >>> mean_of_groups(torch.tensor([[1.0], [3.0], [10.0], [20.0]]), 2).tolist()
    [[2.0], [15.0]]
    """
    return heads.unflatten(0, (num_groups, -1)).mean(dim=1)


@torch.no_grad()
def _rebuild(model: Llama, num_kv_heads: int, change: Callable[[Tensor], Tensor]) -> Llama:
    """Return a model whose K and V projections are `change` of the old ones, seen as heads.

    A projection is (num_kv_heads * head_dim, hidden_size): a head is head_dim of its rows.
    """
    config = replace(model.config, num_kv_heads=num_kv_heads)
    weights = {
        name: change(value.unflatten(0, (-1, config.head_dim))).flatten(0, 1)
        if name.endswith(KV_TENSORS)
        else value
        for name, value in model.state_dict().items()
    }
    like = next(model.parameters())
    rebuilt = Llama(config).to(device=like.device, dtype=like.dtype)
    rebuilt.load_state_dict(weights)
    return rebuilt.train(model.training)

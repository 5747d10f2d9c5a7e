"""Many new tokens through a Llama: the library's matrix product, and the fast path's attention.

The same sums as `Llama.forward`, with fewer passes over memory: rooms that every layer uses again,
results added in place, keys and values written straight into the cache.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kvlab.model.fast_native import NativeLlama, View
from kvlab.model.llama import Block, Llama, RMSNorm

MANY = 64
"""Up to so many tokens in a pass the C multiplies; beyond, which of two ways is measured."""
WAYS = ("library", "native")


def prefill_many(
    llama: Llama, native: NativeLlama, ids: Tensor, view: View, *, logits_of: int = 1
) -> Tensor:
    """Run new tokens, (batch, q_len), into the cache that `view` shows.

    Returns logits of the last `logits_of` tokens, (batch, logits_of, vocab_size).
    """
    config, tokens = llama.config, ids.numel()
    q_size, kv_size = (n * config.head_dim for n in (config.num_heads, config.num_kv_heads))
    hidden = llama.model.embed_tokens(ids.flatten())  # (tokens, hidden_size), and stays so
    rooms = _Rooms(
        normed=torch.empty_like(hidden),
        qkv=hidden.new_empty(tokens, q_size + 2 * kv_size),
        mix=hidden.new_empty(tokens, q_size),
        gate=hidden.new_empty(tokens, config.intermediate_size),
        up=hidden.new_empty(tokens, config.intermediate_size),
    )
    for index, block in enumerate(llama.model.layers):
        _attention(block, native, view, index, hidden, rooms)
        _mlp(block, hidden, rooms)
    last = hidden.view(*ids.shape, -1)[:, -logits_of:]
    return llama.lm_head(llama.model.norm(last))


@dataclass(frozen=True)
class _Rooms:
    """Memory that one layer after the other fills: new memory would cost a page fault each time."""

    normed: Tensor
    qkv: Tensor
    mix: Tensor
    gate: Tensor
    up: Tensor


def _attention(
    block: Block, native: NativeLlama, view: View, index: int, hidden: Tensor, rooms: _Rooms
) -> None:
    part, start = block.self_attn, 0
    _norm(block.input_layernorm, hidden, rooms.normed)
    for linear in (part.q_proj, part.k_proj, part.v_proj):
        _product(linear, rooms.normed, rooms.qkv[:, start : start + linear.out_features])
        start += linear.out_features
    native.attend(rooms.qkv, view, index, rooms.mix)
    _add_product(part.o_proj, rooms.mix, hidden)


def _mlp(block: Block, hidden: Tensor, rooms: _Rooms) -> None:
    part = block.mlp
    _norm(block.post_attention_layernorm, hidden, rooms.normed)
    _product(part.gate_proj, rooms.normed, rooms.gate)
    _product(part.up_proj, rooms.normed, rooms.up)
    F.silu(rooms.gate, inplace=True).mul_(rooms.up)
    _add_product(part.down_proj, rooms.gate, hidden)


def _norm(norm: RMSNorm, hidden: Tensor, out: Tensor) -> None:
    length = torch.linalg.vector_norm(hidden, dim=-1, keepdim=True)
    scale = length.square_().div_(hidden.shape[1]).add_(norm.eps).rsqrt_()
    torch.mul(hidden, scale, out=out).mul_(norm.weight)


def _product(linear: nn.Linear, states: Tensor, out: Tensor) -> None:
    torch.mm(states, linear.weight.t(), out=out)
    if linear.bias is not None:
        out += linear.bias


def _add_product(linear: nn.Linear, states: Tensor, out: Tensor) -> None:
    out.addmm_(states, linear.weight.t())
    if linear.bias is not None:
        out += linear.bias

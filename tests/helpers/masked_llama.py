"""A Llama run without any cache under an explicit mask: what evicting must equal, step by step."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.rope import rotate

VOCAB_SIZE = 61
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": VOCAB_SIZE,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500.0,
}


def tiny_llama(**changes: Any) -> Llama:
    """Return a random Llama whose logits stay near 1, so that 1e-5 is above their rounding."""
    return Llama(LlamaConfig.from_hf(CONFIG | changes)).init_weights(seed=7, std=0.2).eval()


def random_ids(batch: int, length: int, seed: int = 1) -> Tensor:
    """Return token ids, (batch, length)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, VOCAB_SIZE, (batch, length), generator=generator)


class MaskedRun(NamedTuple):
    """Logits (batch, tokens, vocab_size), and each layer's weights (batch, heads, q, keys)."""

    logits: Tensor
    weights: list[Tensor]


def masked_run(model: Llama, ids: Tensor, allowed: list[Tensor]) -> MaskedRun:
    """Run all tokens at once; `allowed` is (batch, num_kv_heads, tokens, tokens) for each layer."""
    config, hidden = model.config, model.model.embed_tokens(ids)
    turn = model.rope.cos_sin(torch.arange(ids.shape[1])[None], hidden.dtype)
    group, all_weights = config.queries_per_kv_head, []
    for block, visible in zip(model.model.layers, allowed, strict=True):
        attention, normed = block.self_attn, block.input_layernorm(hidden)
        query, key, value = (
            projection(normed).unflatten(-1, (-1, config.head_dim)).transpose(1, 2)
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        query, key = rotate(query, *turn), rotate(key, *turn)
        key, value, visible = (x.repeat_interleave(group, dim=1) for x in (key, value, visible))
        scores = query @ key.transpose(2, 3) / config.head_dim**0.5
        weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)
        hidden = hidden + attention.o_proj((weights @ value).transpose(1, 2).flatten(2))
        hidden = hidden + block.mlp(block.post_attention_layernorm(hidden))
        all_weights.append(weights)
    return MaskedRun(model.lm_head(model.model.norm(hidden)), all_weights)


class CachedRun(NamedTuple):
    """What a cached run gave, what it could see, and what each layer held after each piece."""

    logits: Tensor
    allowed: list[Tensor]
    kept: list[list[Tensor]]


def cached_run(model: Llama, ids: Tensor, chunks: list[int], cache: Any) -> CachedRun:
    """Feed `ids` in pieces; note from `kept_positions` what every query was allowed to see."""
    (batch, length), heads = ids.shape, model.config.num_kv_heads
    allowed = [torch.zeros(batch, heads, length, length, dtype=torch.bool) for _ in cache.layers]
    logits, kept, start = [], [[] for _ in cache.layers], 0
    for piece in ids.split(chunks, dim=1):
        end = start + piece.shape[1]
        for visible, held in zip(allowed, kept, strict=True):
            if held:
                seen = torch.zeros(batch, heads, length + 1, dtype=torch.bool)
                seen.scatter_(2, held[-1].where(held[-1] >= 0, length), True)  # -1 fills up
                visible[:, :, start:end] = seen[:, :, None, :length]
            causal = torch.ones(end - start, end - start).tril().bool()
            visible[:, :, start:end, start:end] = causal
        logits.append(model(piece, cache=cache))
        for held, layer in zip(kept, cache.layers, strict=True):
            held.append(layer.kept_positions())
        start = end
    return CachedRun(torch.cat(logits, dim=1), allowed, kept)

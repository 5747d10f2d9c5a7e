"""Latent attention (MLA, DeepSeek-V2 and V3) computed in both ways, and a small model of it.

The cache holds one latent and one turned key a token. `absorb = False` makes every head's keys and
values out of the latents; `absorb = True` puts those matrices on the query and on the output, and
lets every head read the latents themselves. Both give the same answer. Hugging Face's parameter
names. Left out: experts, training tricks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kvlab.cache.protocol import wants_weights
from kvlab.model.latent_config import LatentConfig
from kvlab.model.llama import MLP, Block, Llama, RMSNorm
from kvlab.model.rope import Rope, rotate

LATENT_EPS = 1e-6  # of the norms inside attention; DeepSeek's code has it as a constant


class LatentAttention(nn.Module):
    """Causal attention over a latent; one RoPE key is shared by all heads."""

    absorb = False

    def __init__(self, config: LatentConfig, layer_idx: int) -> None:
        super().__init__()
        shape, bias = config.attention, config.attention_bias
        self.shape, self.layer_idx = shape, layer_idx
        self.scale, self.interleave = config.softmax_scale, config.rope_interleave
        hidden, width = shape.hidden_size, shape.num_heads * shape.qk_head_dim
        if shape.q_lora_rank is None:
            self.q_proj = nn.Linear(hidden, width, bias=False)
        else:
            self.q_a_proj = nn.Linear(hidden, shape.q_lora_rank, bias=bias)
            self.q_a_layernorm = RMSNorm(shape.q_lora_rank, LATENT_EPS)
            self.q_b_proj = nn.Linear(shape.q_lora_rank, width, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(hidden, shape.elements_per_token, bias=bias)
        self.kv_a_layernorm = RMSNorm(shape.kv_lora_rank, LATENT_EPS)
        up_width = shape.num_heads * (shape.qk_nope_head_dim + shape.v_head_dim)
        self.kv_b_proj = nn.Linear(shape.kv_lora_rank, up_width, bias=False)
        self.o_proj = nn.Linear(shape.num_heads * shape.v_head_dim, hidden, bias=bias)

    def forward(
        self, hidden: Tensor, turn: tuple[Tensor, Tensor], mask: Tensor | None, cache: Any
    ) -> Tensor:
        """Write the new latents to the cache, then attend to all that it returns."""
        query, query_rope = self.queries(hidden, turn)
        latent, rope_key = self.latents(hidden, turn)
        if cache is not None:
            latent, rope_key = cache.update(latent, rope_key, self.layer_idx)
        attend = self.absorbing if self.absorb else self.expanding
        mixed, weights = attend(query, query_rope, latent, rope_key, mask)
        if wants_weights(cache):
            cache.observe(weights, self.layer_idx)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def queries(self, hidden: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return each head's query, (batch, num_heads, q_len, width): plain part, turned part."""
        shape = self.shape
        if shape.q_lora_rank is None:
            query = self.q_proj(hidden)
        else:
            query = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden)))
        query = query.unflatten(2, (shape.num_heads, shape.qk_head_dim)).transpose(1, 2)
        plain, turned = query.split([shape.qk_nope_head_dim, shape.qk_rope_head_dim], dim=-1)
        return plain, self.turn(turned, turn)

    def latents(self, hidden: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return what the cache keeps: (batch, 1, q_len, kv_lora_rank) and the RoPE key."""
        both = self.kv_a_proj_with_mqa(hidden)[:, None]
        latent, rope_key = both.split(
            [self.shape.kv_lora_rank, self.shape.qk_rope_head_dim], dim=-1
        )
        return self.kv_a_layernorm(latent), self.turn(rope_key, turn)

    def turn(self, states: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Rotate by position; weights that pair neighbours are put in the Llama's order first."""
        if self.interleave:
            states = states.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
        return rotate(states, *turn)

    # NEW against a Llama: two ways from here, with one result

    def expanding(
        self, query: Tensor, query_rope: Tensor, latent: Tensor, rope_key: Tensor, mask: Any
    ) -> tuple[Tensor, Tensor]:
        """Make keys and values of all tokens; return the mix per head and the weights."""
        widths = [self.shape.qk_nope_head_dim, self.shape.v_head_dim]
        heads = self.kv_b_proj(latent[:, 0]).unflatten(2, (self.shape.num_heads, -1))
        key, value = heads.transpose(1, 2).split(widths, dim=-1)  # (batch, num_heads, kv_len, ...)
        scores = query @ key.transpose(-1, -2) + against_shared(query_rope, rope_key)
        weights = self.weights(scores, mask)
        return weights @ value, weights

    def absorbing(
        self, query: Tensor, query_rope: Tensor, latent: Tensor, rope_key: Tensor, mask: Any
    ) -> tuple[Tensor, Tensor]:
        """Let all heads read the latents; return the mix per head and the weights."""
        widths = [self.shape.qk_nope_head_dim, self.shape.v_head_dim]
        up = self.kv_b_proj.weight.unflatten(0, (self.shape.num_heads, -1))
        up_key, up_value = up.split(widths, dim=1)  # (num_heads, width, kv_lora_rank)
        scores = against_shared(query @ up_key, latent) + against_shared(query_rope, rope_key)
        weights = self.weights(scores, mask)
        mixed = weights.flatten(1, 2) @ latent[:, 0]  # (batch, num_heads * q_len, kv_lora_rank)
        mixed = mixed.unflatten(1, weights.shape[1:3])
        return mixed @ up_value.transpose(-1, -2), weights

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Return the softmax of the scaled scores, (batch, num_heads, q_len, kv_len)."""
        q_len, kv_len = scores.shape[2:]
        if mask is None:
            causal = torch.ones(q_len, kv_len, dtype=torch.bool, device=scores.device)
            mask = causal.tril(kv_len - q_len)
        hidden = (scores.float() * self.scale).masked_fill(~mask, float("-inf"))
        return hidden.softmax(dim=-1).to(scores.dtype)


def against_shared(query: Tensor, shared: Tensor) -> Tensor:
    """Return scores of every head against one key for all, (batch, num_heads, q_len, kv_len).

    To a shared key, heads are only more queries: it is read once.
    """
    scores = query.flatten(1, 2) @ shared[:, 0].transpose(-1, -2)
    return scores.unflatten(1, query.shape[1:3])


class LatentBlock(Block):
    """A Llama's layer with latent attention in the place of grouped heads."""

    def __init__(self, config: LatentConfig, layer_idx: int) -> None:
        nn.Module.__init__(self)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = LatentAttention(config, layer_idx)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)


class LatentModel(Llama):
    """A Llama of such layers: decodes, pads, chunks and rolls back as the Llama does.

    `absorb` says how all layers attend; it may be changed between any two passes.
    """

    def __init__(self, config: LatentConfig) -> None:
        nn.Module.__init__(self)
        self.config, self.rope = config, Rope(config.rope, config.attention.qk_rope_head_dim)
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        layers = (LatentBlock(config, i) for i in range(config.num_layers))
        self.model.layers = nn.ModuleList(layers)
        self.model.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self._tie()

    @property
    def absorb(self) -> bool:
        """Whether the up-projection is absorbed instead of expanding the latents."""
        return all(block.self_attn.absorb for block in self.model.layers)

    @absorb.setter
    def absorb(self, value: bool) -> None:
        """Let every layer attend this way from now on."""
        for block in self.model.layers:
            block.self_attn.absorb = value

"""A Llama that can be read in one sitting, with Hugging Face's parameter names.

RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied or untied head, sliding windows.
Of a cache it knows the calls in `cache/protocol.py` alone; three of them are needed.
Left out: dropout, tensor parallelism, quantised weights. Loading is in `load.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kvlab.model.config import LlamaConfig
from kvlab.model.masks import attend_with_weights, check_inputs, layer_masks, row_positions
from kvlab.model.rope import Rope, rotate

if TYPE_CHECKING:
    from kvlab.cache.protocol import KVCacheProtocol

EMBEDDING = "model.embed_tokens.weight"


class RMSNorm(nn.Module):
    """Divide each vector by its root mean square, computed in float32, then scale it."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the normed vectors in the dtype they came in."""
        exact = hidden.float()
        exact = exact * torch.rsqrt(exact.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * exact.to(hidden.dtype)


class Attention(nn.Module):
    """Causal attention; query head h reads KV head h // queries_per_kv_head."""

    def __init__(self, config: LlamaConfig, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx, self.head_dim = layer_idx, config.head_dim
        self.grouped = config.queries_per_kv_head > 1
        hidden, bias = config.hidden_size, config.attention_bias
        q_size, kv_size = (n * config.head_dim for n in (config.num_heads, config.num_kv_heads))
        self.q_proj = nn.Linear(hidden, q_size, bias=bias)
        self.k_proj = nn.Linear(hidden, kv_size, bias=bias)
        self.v_proj = nn.Linear(hidden, kv_size, bias=bias)
        self.o_proj = nn.Linear(q_size, hidden, bias=bias)

    def forward(
        self, hidden: Tensor, turn: tuple[Tensor, Tensor], mask: Tensor | None, cache: Any
    ) -> Tensor:
        """Write this layer's new keys and values to the cache, then attend to all it returns."""
        split = (*hidden.shape[:2], -1, self.head_dim)
        query = rotate(self.q_proj(hidden).view(split).transpose(1, 2), *turn)
        key = rotate(self.k_proj(hidden).view(split).transpose(1, 2), *turn)
        value = self.v_proj(hidden).view(split).transpose(1, 2)  # (batch, num_kv_heads, q_len, ...)
        if cache is not None:
            key, value = cache.update(key, value, self.layer_idx)  # now (..., kv_len, head_dim)
        if getattr(cache, "wants_queries", False):
            cache.observe_queries(query, self.layer_idx)
        if getattr(cache, "wants_weights", False) and callable(getattr(cache, "observe", None)):
            mixed, weights = attend_with_weights(query, key, value, mask)
            cache.observe(weights, self.layer_idx)
        else:
            square = mask is None and query.shape[2] > 1
            mixed = F.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=square, enable_gqa=self.grouped
            )
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """SwiGLU: one projection gates another."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        hidden, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = nn.Linear(hidden, inner, bias=bias)
        self.up_proj = nn.Linear(hidden, inner, bias=bias)
        self.down_proj = nn.Linear(inner, hidden, bias=bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (batch, q_len, hidden_size)."""
        return self.down_proj(F.silu(self.gate_proj(hidden)) * self.up_proj(hidden))


class Block(nn.Module):
    """One layer: attention, then the MLP, each added to what came in."""

    def __init__(self, config: LlamaConfig, layer_idx: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config, layer_idx)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(
        self, hidden: Tensor, turn: tuple[Tensor, Tensor], mask: Tensor | None, cache: Any
    ) -> Tensor:
        """Return (batch, q_len, hidden_size)."""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), turn, mask, cache)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Body(nn.Module):
    """The parameters that Hugging Face files keep under `model.`."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Block(config, i) for i in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Module):
    """Token ids in, logits out; the position of the next token lives in the cache alone.

    >>> config = LlamaConfig(num_layers=1, num_heads=2, num_kv_heads=1, head_dim=4, hidden_size=8,
    ...                      intermediate_size=16, vocab_size=10, max_seq_len=32)
    >>> tuple(Llama(config)(torch.tensor([[1, 2, 3]])).shape)
    (1, 3, 10)
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config, self.rope = config, Rope(config.rope, config.head_dim)
        self.model = Body(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self._tie()

    def forward(
        self,
        input_ids: Tensor,
        *,
        cache: KVCacheProtocol | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        last_token_only: bool = False,
    ) -> Tensor:
        """Return logits (batch, q_len, vocab_size), or (batch, 1, vocab_size) of the last column.

        input_ids: (batch, q_len), the new tokens only. attention_mask: (batch, past + q_len), 0 on
        padding, past included; positions then count each row's own tokens. position_ids:
        (batch, q_len), only to overrule that. Raises InvalidArgument before the cache is touched.
        """
        past = 0 if cache is None else int(cache.get_seq_length())
        start = cache.get_next_position() if hasattr(cache, "get_next_position") else past
        check_inputs(self.config, input_ids, past, attention_mask, position_ids, start)
        if attention_mask is not None and bool(attention_mask.all()):
            attention_mask = None
        masks = layer_masks(self.config, input_ids, past, attention_mask, cache)
        if position_ids is None:
            position_ids = row_positions(input_ids, start, attention_mask)
        hidden = self.model.embed_tokens(input_ids)
        turn = self.rope.cos_sin(position_ids, hidden.dtype)
        for block, mask in zip(self.model.layers, masks, strict=True):
            hidden = block(hidden, turn, mask, cache)
        hidden = hidden[:, -1:] if last_token_only else hidden
        return self.lm_head(self.model.norm(hidden))

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load Hugging Face's names; a tied model needs no `lm_head.weight` in the file."""
        if self.config.tied_embeddings and EMBEDDING in state_dict:
            state_dict = {**state_dict, "lm_head.weight": state_dict[EMBEDDING]}
        result = super().load_state_dict(state_dict, *args, **kwargs)
        self._tie()
        return result

    @torch.no_grad()
    def init_weights(self, seed: int, std: float = 0.02) -> Self:
        """Draw every matrix on the CPU from a generator of its own: equal bytes on any device."""
        generator = torch.Generator("cpu").manual_seed(seed)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                weight.copy_(torch.empty(weight.shape).normal_(0.0, std, generator=generator))
            else:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
        return self

    def _tie(self) -> None:
        if self.config.tied_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

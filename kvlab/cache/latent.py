"""A layer that keeps one latent and one RoPE key a token, for all heads together (MLA).

What multi-head latent attention stores instead of keys and values. How attention gets its heads
back from the latent, or does without them, is in `kvlab.model.latent_attention`.
"""

from __future__ import annotations

from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.contiguous import GrowingLayer
from kvlab.errors import InvalidArgument


class LatentLayer(GrowingLayer):
    """Keep (batch, 1, tokens, kv_lora_rank) and (batch, 1, tokens, qk_rope_head_dim).

    In the protocol's terms the latent is the key and the RoPE key is the value: nothing is
    doubled, and no number of heads enters. Widths that are given are checked; left out, they
    are those of the first tokens. Runs in transformers' DeepSeek models, too, where these hand
    over the latent.

    >>> import torch
    >>> layer = LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64)
    >>> kinds = {"dtype": torch.bfloat16}
    >>> _ = layer.update(torch.zeros(2, 1, 10, 512, **kinds), torch.zeros(2, 1, 10, 64, **kinds))
    >>> layer.nbytes == latent_nbytes(kv_lora_rank=512, qk_rope_head_dim=64, bytes_per_element=2,
    ...                               seq_len=10, batch=2)
    True
    """

    def __init__(
        self, kv_lora_rank: int | None = None, qk_rope_head_dim: int | None = None
    ) -> None:
        super().__init__()
        names = ("kv_lora_rank", "qk_rope_head_dim")
        widths = (kv_lora_rank, qk_rope_head_dim)
        self.widths = {
            name: whole_number(name, width)
            for name, width in zip(names, widths, strict=True)
            if width is not None
        }

    @property
    def latent(self) -> Tensor:
        """The latents held, (batch, 1, tokens, kv_lora_rank)."""
        return self.held()[0]

    @property
    def rope_key(self) -> Tensor:
        """The turned keys held, (batch, 1, tokens, qk_rope_head_dim), shared by all heads."""
        return self.held()[1]

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Start with 0 tokens; refuse keys and values of several heads, and other widths."""
        if key_states.shape[1] != 1 or value_states.shape[1] != 1:
            rule = "a latent is one for all heads; a model that hands over heads has no latent"
            raise InvalidArgument("heads of the latent", key_states.shape[1], rule)
        offered = {"kv_lora_rank": key_states.shape[3], "qk_rope_head_dim": value_states.shape[3]}
        for name, width in self.widths.items():
            if offered[name] != width:
                raise InvalidArgument(name, offered[name], f"this layer was made for {width}")
        super().allocate(key_states, value_states)


def latent_nbytes(
    *,
    kv_lora_rank: int,
    qk_rope_head_dim: int,
    bytes_per_element: int,
    seq_len: int,
    batch: int = 1,
) -> int:
    """Return the bytes that one layer keeps; times the layers, those of a model.

    DeepSeek-V2 in 16 bit, a token over its 60 layers:

    >>> 60 * latent_nbytes(kv_lora_rank=512, qk_rope_head_dim=64, bytes_per_element=2, seq_len=1)
    69120
    """
    width = whole_number("kv_lora_rank", kv_lora_rank)
    width += whole_number("qk_rope_head_dim", qk_rope_head_dim)
    tokens = whole_number("batch", batch) * whole_number("seq_len", seq_len, minimum=0)
    return width * tokens * whole_number("bytes_per_element", bytes_per_element)

"""The sizes of a small model with latent attention, read from a DeepSeek `config.json`. No torch.

Left out: experts. A config is accepted when every layer has a plain MLP.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.latent_work import LatentShape
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.rope_config import RopeConfig, check_positive

LATENT_TYPES = ("deepseek_v2", "deepseek_v3")


@dataclass(frozen=True)
class LatentConfig:
    """A decoder whose layers are latent attention and an MLP.

    `rope_interleave` says how the weights pair the turned numbers: (0, 1), (2, 3), ... in
    DeepSeek's files, (0, half), (1, half + 1), ... in a Llama's.

    >>> shape = LatentShape(hidden_size=32, num_heads=4, kv_lora_rank=16, qk_nope_head_dim=8,
    ...                     qk_rope_head_dim=4, v_head_dim=6)
    >>> config = LatentConfig(attention=shape, num_layers=2, intermediate_size=48, vocab_size=61,
    ...                       max_seq_len=64)
    >>> round(config.softmax_scale, 4)
    0.2887
    """

    attention: LatentShape
    num_layers: int
    intermediate_size: int
    vocab_size: int
    max_seq_len: int
    rms_norm_eps: float = 1e-6
    rope: RopeConfig = field(default_factory=RopeConfig)
    rope_interleave: bool = True
    attention_bias: bool = False
    tied_embeddings: bool = False
    mlp_bias: bool = False

    def __post_init__(self) -> None:
        for name in ("num_layers", "intermediate_size", "vocab_size", "max_seq_len"):
            whole_number(name, getattr(self, name))
        check_positive("rms_norm_eps", self.rms_norm_eps)
        if self.attention.qk_rope_head_dim % 2:
            width = self.attention.qk_rope_head_dim
            raise InvalidArgument("qk_rope_head_dim", width, "must be even: RoPE turns pairs")

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return self.attention.hidden_size

    @property
    def num_heads(self) -> int:
        """Query heads."""
        return self.attention.num_heads

    @property
    def queries_per_kv_head(self) -> int:
        """Query heads that read one cached head: all of them read the one latent."""
        return self.num_heads

    @property
    def layer_windows(self) -> tuple[None, ...]:
        """The window of each layer: none."""
        return (None,) * self.num_layers

    @property
    def softmax_scale(self) -> float:
        """What scores are multiplied with: 1 / sqrt(qk_head_dim), more where yarn stretches.

        DeepSeek raises it with the logarithm of yarn's factor, by `mscale_all_dim`, squared.
        """
        scale, rope = self.attention.qk_head_dim**-0.5, self.rope
        if rope.kind == "yarn" and rope.mscale_all_dim and rope.factor > 1:
            scale *= (0.1 * rope.mscale_all_dim * math.log(rope.factor) + 1.0) ** 2
        return scale

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> Self:
        """Read the parsed `config.json` of a DeepSeek-V2 or V3 without experts."""
        if config.get("model_type") not in LATENT_TYPES:
            rule = f"must be one of {', '.join(LATENT_TYPES)}"
            raise InvalidArgument("model_type", config.get("model_type"), rule)
        layers = whole_number("num_hidden_layers", config.get("num_hidden_layers"))
        dense = config.get("first_k_dense_replace", layers)
        if dense < layers:
            raise Unsupported(
                f"first_k_dense_replace={dense}: the layers after it have experts, which are left"
                f" out here; {layers} would make all of them plain"
            )
        positions = whole_number("max_position_embeddings", config.get("max_position_embeddings"))
        return cls(
            attention=LatentShape.from_config(config),
            num_layers=layers,
            intermediate_size=config.get("intermediate_size"),
            vocab_size=config.get("vocab_size"),
            max_seq_len=positions,
            rms_norm_eps=config.get("rms_norm_eps", 1e-6),
            rope=_read_rope(config, positions),
            rope_interleave=bool(config.get("rope_interleave", True)),
            attention_bias=bool(config.get("attention_bias")),
            tied_embeddings=bool(config.get("tie_word_embeddings")),
        )


def _read_rope(config: Mapping[str, Any], positions: int) -> RopeConfig:
    """Read the rotary part; here an mscale of 0 means none."""
    read = dict(config)
    for key in ("rope_scaling", "rope_parameters"):
        if isinstance(read.get(key), Mapping):
            read[key] = {k: v for k, v in read[key].items() if "mscale" not in k or v}
    return RopeConfig.from_hf(read, max_seq_len=positions)

"""One reading of a config's fields: every spelling in use, nulls, and the defaults of its class.

Left out: which layers there are and what they store (`layer_types`, `families`).
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kvlab._paths import data_dir
from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

SPELLINGS: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": (
        "num_decoder_layers",
        "decoder_layers",
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "num_transformer_layers",
        "layers",
    ),
    "num_attention_heads": (
        "num_decoder_attention_heads",
        "decoder_attention_heads",
        "num_attention_heads",
        "n_head",
        "n_heads",
        "num_heads",
        "attention_heads",
    ),
    "num_key_value_heads": (
        "num_key_value_heads",
        "num_kv_heads",
        "n_kv_heads",
        "n_head_kv",
        "kv_n_heads",
        "num_query_groups",
        "num_attention_groups",
    ),
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "embed_dim", "dim"),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels", "d_kv", "head_size", "d_head"),
    "max_seq_len": (
        "model_max_length",
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "n_ctx",
        "max_target_positions",
        "max_sequence_length",
    ),
    "sliding_window": (
        "sliding_window",
        "sliding_window_size",
        "attention_window_size",
        "window_size",
        "local_window_size",
    ),
    "dtype": ("dtype", "torch_dtype"),
}
"""Meaning -> the keys under which configs write it, in the order in which they are tried.

A decoder's own keys come first: beside them `num_hidden_layers` is the encoder's (Whisper, BART).
"""

FLAGS = (
    "multi_query", "new_decoder_architecture", "use_sliding_window", "max_window_layers",
    "attention_chunk_size", "num_kv_shared_layers", "is_encoder_decoder", "global_head_dim",
    "no_rope_layer_interval", "sliding_window_pattern", "global_attn_every_n_layers",
    "full_attention_interval", "layer_group_size", "attn_layer_period", "attn_layer_offset",
    "attention_k_eq_v", "kv_lora_rank", "qk_rope_head_dim", "v_head_dim", "index_head_dim",
    "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim", "linear_num_value_heads",
    "linear_num_heads", "linear_head_dim", "indexer_head_dim", "linear_num_key_heads",
    "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim",
    "short_conv_kernel_size", "mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "mamba_d_head",
    "mamba_head_dim", "mamba_headdim", "mamba_d_state", "ssm_state_size", "state_size",
    "mamba_n_groups", "mamba_ngroups", "n_groups", "mamba_d_conv", "conv_kernel",
    "conv_kernel_size", "mamba_d_ssm", "mamba_expand", "expand", "intermediate_size", "lru_width",
    "conv1d_width", "conv_L_cache",
)  # fmt: skip
"""Further keys whose class default counts when a config does not write them."""

DIMENSIONS = ("num_hidden_layers", "num_attention_heads", "hidden_size")
"""Never filled in for a flat config: a class default here would be another model's size."""


@lru_cache(maxsize=1)
def class_defaults() -> Mapping[str, Mapping[str, Any]]:
    """Return model type -> key -> the value its configuration class takes when the key is absent.

    Source: the configuration classes of transformers 5.24.0 (`data/config_defaults.json`). Only
    there to fill a gap; every use is said in the notes.
    """
    path = data_dir() / "config_defaults.json"
    return json.loads(path.read_text(encoding="utf-8"))["classes"]  # type: ignore[no-any-return]


class Config:
    """The fields of one text config, read by meaning, with notes on everything assumed.

    >>> notes: list[str] = []
    >>> config = Config({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768}, notes)
    >>> config.count("num_hidden_layers"), config.count("head_dim", default=64)
    (12, 64)
    """

    def __init__(
        self, raw: Mapping[str, Any], notes: list[str], *, nested: bool = False, block: str = ""
    ) -> None:
        self.raw, self.notes, self.nested, self.block = raw, notes, nested, block
        self.model_type = str(raw.get("model_type") or "")

    def overlay(self, changes: Mapping[str, Any]) -> "Config":
        """Return this config with some keys replaced: what one layer sees."""
        return Config({**self.raw, **changes}, self.notes, nested=self.nested, block=self.block)

    def note(self, text: str) -> None:
        """Say an assumption once."""
        if text not in self.notes:
            self.notes.append(text)

    def has(self, field: str) -> bool:
        """Return whether the config itself writes the field, under any spelling, not null."""
        return self.written(field) is not None

    def written(self, field: str) -> Any:
        """Return the field as the config itself writes it, under any spelling, or None."""
        keys = SPELLINGS.get(field, (field,))
        return next((self.raw[key] for key in keys if self.raw.get(key) is not None), None)

    def value(self, field: str) -> Any:
        """Return the field as written; null and absent give None, after the class default."""
        written = self.written(field)
        keys = SPELLINGS.get(field, (field,))
        if written is not None or any(key in self.raw for key in keys):
            return written
        return self._class_default(field, keys)

    def count(self, field: str, *, default: int | None = None, minimum: int = 1) -> int:
        """Return the field as a whole number; raises `InvalidArgument` naming a missing one."""
        value = self.value(field)
        if value is None:
            value = default
        if value is None:
            raise InvalidArgument(f"config.{self.block}{field}", None, "is missing")
        return whole_number(f"config.{self.block}{self.key(field)}", value, minimum=minimum)

    def optional(self, field: str, *, minimum: int = 1) -> int | None:
        """Return the field as a whole number, or None when it is absent, null or 0."""
        value = self.value(field)
        if value is None or (value == 0 and not isinstance(value, bool)):
            return None
        return whole_number(f"config.{self.block}{self.key(field)}", value, minimum=minimum)

    def key(self, field: str) -> str:
        """Return the spelling under which this config writes the field."""
        spelled = (k for k in SPELLINGS.get(field, (field,)) if self.raw.get(k) is not None)
        return next(spelled, field)

    def _class_default(self, field: str, keys: tuple[str, ...]) -> Any:
        if field in DIMENSIONS and not self.nested:
            return None
        known = class_defaults().get(self.model_type, {})
        found = next((known[key] for key in keys if known.get(key) is not None), None)
        if found not in (None, False):
            self.note(f"{field} is not in the config: {found}, the default of {self.model_type}")
        return found

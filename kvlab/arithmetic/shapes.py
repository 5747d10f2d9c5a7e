"""The shape of a Llama-like model: the numbers that decide its memory and its work.

Left out: models whose layers differ from one another, experts, and latent or windowed attention.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, Unsupported

SUPPORTED_MODEL_TYPES = ("llama",)


@dataclass(frozen=True)
class ModelShape:
    """The sizes of one dense decoder in which every layer attends to the whole context.

    >>> shape = ModelShape.from_config(
    ...     {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    ...      "hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49152}, name="smollm2")
    >>> shape.head_dim, shape.queries_per_kv_head
    (64, 3)
    """

    name: str
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    tied_embeddings: bool = False
    max_seq_len: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type is int:
                whole_number(field.name, getattr(self, field.name))
        if self.max_seq_len is not None:
            whole_number("max_seq_len", self.max_seq_len)
        if self.num_heads % self.num_kv_heads:
            rule = f"must divide the {self.num_heads} query heads without rest"
            raise InvalidArgument("num_kv_heads", self.num_kv_heads, rule)

    @property
    def queries_per_kv_head(self) -> int:
        """Query heads that share one key and value head (1 for MHA, `num_heads` for MQA)."""
        return self.num_heads // self.num_kv_heads

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, name: str = "model") -> "ModelShape":
        """Read the shape from the fields of a Hugging Face `config.json`.

        A missing or null `num_key_value_heads` means one per query head; a missing or null
        `head_dim` means hidden size / query heads. A Mistral whose config says that it has no
        window (`"sliding_window": null`) is a Llama here. Raises `InvalidArgument` naming the
        field, and `Unsupported` for a model type whose layers these formulas do not describe.
        """
        _check_model_type(config)
        num_heads = _read(config, "num_attention_heads")
        hidden_size = _read(config, "hidden_size")
        positions = config.get("max_position_embeddings")
        return cls(
            name=name,
            num_layers=_read(config, "num_hidden_layers"),
            num_heads=num_heads,
            num_kv_heads=_read(config, "num_key_value_heads", default=num_heads),
            head_dim=_read_head_dim(config, hidden_size, num_heads),
            hidden_size=hidden_size,
            intermediate_size=_read(config, "intermediate_size"),
            vocab_size=_read(config, "vocab_size"),
            tied_embeddings=bool(config.get("tie_word_embeddings", False)),
            max_seq_len=positions,
        )


def _check_model_type(config: Mapping[str, Any]) -> None:
    model_type = config.get("model_type", "llama")
    if model_type == "mistral" and config.get("sliding_window", 4096) is None:
        _read(config, "num_key_value_heads")  # a Mistral's own default is 8, not one a query head
    elif model_type not in SUPPORTED_MODEL_TYPES:
        known = ", ".join(SUPPORTED_MODEL_TYPES)
        raise Unsupported(f"model_type={model_type!r}: these formulas describe only {known}")


def _read(config: Mapping[str, Any], field: str, *, default: int | None = None) -> int:
    value = config.get(field)
    if value is None:
        value = default
    if value is None:
        raise InvalidArgument(f"config.{field}", value, "is missing")
    return whole_number(f"config.{field}", value)


def _read_head_dim(config: Mapping[str, Any], hidden_size: int, num_heads: int) -> int:
    if config.get("head_dim") is None and hidden_size % num_heads:
        rule = f"must be a multiple of the {num_heads} heads when head_dim is not given"
        raise InvalidArgument("config.hidden_size", hidden_size, rule)
    return _read(config, "head_dim", default=hidden_size // num_heads)

"""The shape of a Llama, read from a Hugging Face `config.json`.

Only what `llama.py` can compute is accepted. Anything else is refused here, by name, so that no
model runs with a silent default. No torch in this file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.shapes import ModelShape
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.rope_config import RopeConfig, check_positive
from kvlab.model.window_config import WINDOWED_TYPES, check_windows, read_windows, windows_of

_SIZES = {  # ours -> Hugging Face's; each must be in the file, for a guess would be a wrong model
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "vocab_size": "vocab_size",
    "max_seq_len": "max_position_embeddings",
}
_MOST_NUMBERS = 2**40  # in one matrix: 4 TiB in float32; beyond it sizes overflow


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes of a Llama, in kvlab's names (`num_layers` is HF's `num_hidden_layers`).

    `sliding_window` is W tokens, the query's own included: query t sees keys t - W + 1 to t. It
    holds for the layers that `layer_types` calls "sliding_attention" (None: for all). Raises
    `InvalidArgument` naming the field when the sizes do not fit together.

    >>> config = LlamaConfig(num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, hidden_size=32,
    ...                      intermediate_size=64, vocab_size=100, max_seq_len=128)
    >>> config.queries_per_kv_head
    2
    """

    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    max_seq_len: int
    rms_norm_eps: float = 1e-6
    rope: RopeConfig = field(default_factory=RopeConfig)
    tied_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: int | None = None
    layer_types: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in (*_SIZES, "num_kv_heads", "head_dim"):
            whole_number(name, getattr(self, name))
        check_positive("rms_norm_eps", self.rms_norm_eps)
        if self.num_heads % self.num_kv_heads:
            rule = (
                f"query heads must be a multiple of the KV heads (num_kv_heads={self.num_kv_heads})"
            )
            raise InvalidArgument("num_heads", self.num_heads, rule)
        if self.head_dim % 2:
            raise InvalidArgument("head_dim", self.head_dim, "must be even: RoPE turns pairs")
        widest = max(self.vocab_size, self.intermediate_size, self.num_heads * self.head_dim)
        if widest * self.hidden_size > _MOST_NUMBERS:
            rule = f"times hidden_size={self.hidden_size} is more than {_MOST_NUMBERS:,} numbers"
            raise InvalidArgument("widest matrix", widest, rule)
        types = check_windows(self.sliding_window, self.layer_types, self.num_layers)
        object.__setattr__(self, "layer_types", types)  # a list of the file becomes a tuple

    @property
    def layer_windows(self) -> tuple[int | None, ...]:
        """The window of each layer in tokens, the query's own included; None sees everything."""
        return windows_of(self.sliding_window, self.layer_types, self.num_layers)

    @property
    def hf_model_type(self) -> str:
        """The `model_type` under which transformers runs this model, windows included."""
        return "ministral" if any(self.layer_windows) else "llama"

    def first_layers(self, num_layers: int) -> Self:
        """Return the config of a model that has only the first `num_layers` layers."""
        types = self.layer_types and self.layer_types[:num_layers]
        return replace(self, num_layers=num_layers, layer_types=types)

    @property
    def queries_per_kv_head(self) -> int:
        """How many query heads read one KV head: 1 is MHA, `num_heads` is MQA."""
        return self.num_heads // self.num_kv_heads

    def to_shape(self, name: str = "model") -> ModelShape:
        """Return the sizes that the formulas of `kvlab.arithmetic` need; they know no windows."""
        if any(self.layer_windows):
            raise Unsupported(f"sliding_window={self.sliding_window}: a ModelShape has no windows")
        names = [f.name for f in fields(ModelShape) if f.name != "name"]
        return ModelShape(name=name, **{key: getattr(self, key) for key in names})

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a `config.json`, or the one in a model folder."""
        path = Path(path)
        path = path / "config.json" if path.is_dir() else path
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidArgument("path", str(path), "no such file") from None
        except OSError as error:
            raise InvalidArgument("path", str(path), f"can't be read ({error.strerror})") from None
        except (ValueError, RecursionError):
            raise InvalidArgument("path", str(path), "is not a JSON file") from None
        if not isinstance(config, dict):
            raise InvalidArgument("path", str(path), "must hold one JSON object")
        return cls.from_hf(config)

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> Self:
        """Read the parsed `config.json` of a Llama, or of a Mistral or Ministral with its windows.

        `head_dim` missing or null means `hidden_size // num_attention_heads`, and
        `num_key_value_heads` missing or null means one KV head for each query head.
        """
        _check_architecture(config)
        sizes = {ours: _read_size(config, theirs) for ours, theirs in _SIZES.items()}
        head_dim = config.get("head_dim")
        if head_dim is None and sizes["hidden_size"] % sizes["num_heads"]:
            rule = (
                f"must be a multiple of num_attention_heads={sizes['num_heads']}, or give head_dim"
            )
            raise InvalidArgument("hidden_size", sizes["hidden_size"], rule)
        num_kv_heads = config.get("num_key_value_heads")
        return cls(
            **sizes,
            num_kv_heads=sizes["num_heads"] if num_kv_heads is None else num_kv_heads,
            head_dim=sizes["hidden_size"] // sizes["num_heads"] if head_dim is None else head_dim,
            rms_norm_eps=config.get("rms_norm_eps", 1e-6),
            rope=RopeConfig.from_hf(config, max_seq_len=sizes["max_seq_len"]),
            tied_embeddings=_read_flag(config, "tie_word_embeddings"),
            attention_bias=_read_flag(config, "attention_bias"),
            mlp_bias=_read_flag(config, "mlp_bias"),
            **read_windows(config),
        )


def _check_architecture(config: Mapping[str, Any]) -> None:
    kind = config.get("model_type")
    if kind in WINDOWED_TYPES:  # their classes fill in 8 KV heads where a Llama has its own rule
        _read_size(config, "num_key_value_heads")
    elif kind != "llama":
        raise InvalidArgument("model_type", kind, "must be 'llama', 'mistral' or 'ministral'")
    if config.get("hidden_act", "silu") != "silu":
        raise InvalidArgument("hidden_act", config["hidden_act"], "must be 'silu'")
    if given := config.get("quantization_config"):
        method = given.get("quant_method") if isinstance(given, Mapping) else given
        raise InvalidArgument("quant_method", method, "quantised safetensors are not read")


def _read_flag(config: Mapping[str, Any], key: str) -> bool:
    value = config.get(key)
    if value is not None and not isinstance(value, bool):
        raise InvalidArgument(key, value, "must be true, false or null")
    return bool(value)


def _read_size(config: Mapping[str, Any], key: str) -> int:
    if config.get(key) is None:
        raise InvalidArgument(key, "missing", "the model's config must state it")
    return whole_number(key, config[key])

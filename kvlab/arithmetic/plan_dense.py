"""The parameters of a model from its config: exact for dense Llama-likes, else the catalogue's.

Left out: vision towers, and the exact place of experts (they are spread evenly over ranks).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvlab.arithmetic.config_source import find_config
from kvlab.arithmetic.plan_experts import find_experts
from kvlab.arithmetic.plan_weights import Weights, given_weights
from kvlab.arithmetic.shapes import ModelShape
from kvlab.arithmetic.text_block import text_config
from kvlab.errors import InvalidArgument

COMPUTED = "computed from the config"


@dataclass(frozen=True, slots=True)
class Dense:
    """What a family adds to the plain Llama layer; its class default for tied embeddings."""

    qkv_bias: bool = False
    norms: int = 2
    head_norms: bool = False
    full_norms: bool = False
    tied: bool = False


DENSE_FAMILIES = {
    "llama": Dense(),
    "mistral": Dense(),
    "ministral3": Dense(),
    "phi3": Dense(),
    "granite": Dense(),
    "qwen2": Dense(qkv_bias=True),
    "qwen3": Dense(head_norms=True),
    "hunyuan_v1_dense": Dense(head_norms=True),
    "olmo2": Dense(full_norms=True),
    "gemma": Dense(tied=True),
    "gemma2": Dense(norms=4, tied=True),
    "gemma3_text": Dense(norms=4, head_norms=True, tied=True),
}
"""Model types whose parameters these formulas give to the last one."""


def read_weights(
    source: "Mapping[str, Any] | str | Path",
    *,
    parameters: int | None = None,
    allow_hub: bool = False,
) -> Weights:
    """Return the weights of a model: from `parameters` when given, its config, or the catalogue.

    Raises `InvalidArgument` when none of the three can say how many there are.

    >>> read_weights("llama-3.1-70b").parameters
    70553706496
    >>> read_weights("deepseek-v3").source
    'the parameter count of the catalogue, spread evenly over layers and ranks'
    """
    name, raw = find_config(source, allow_hub=allow_hub)
    config = dict(text_config(raw, []).raw)
    family = DENSE_FAMILIES.get(str(config.get("model_type", "llama")))
    if family is not None and parameters is None and raw.get("text_config") is None:
        return _dense(config, family, name)
    count = parameters if parameters is not None else _catalogued(raw, config)
    layers = _number(config, "num_hidden_layers") or _number(config, "n_layer") or 1
    table = _number(config, "vocab_size") * _number(config, "hidden_size")
    head = table if config.get("tie_word_embeddings") is False else 0
    weights = given_weights(count, layers, embedding=table, head=head)
    experts = find_experts(config, count)
    said = "the number given" if parameters is not None else "the parameter count of the catalogue"
    return replace(weights, source=f"{said}, spread evenly over layers and ranks", experts=experts)


def _catalogued(raw: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    from kvlab.arithmetic.catalogue import load_models

    found = next((row.parameters for row in load_models() if row.config == raw), None)
    if found is None:
        named = repr(config.get("model_type"))
        rule = f"must be given: the weights of model_type={named} cannot be computed from its"
        rule += " config; `kvlab plan` takes their number as --parameters"
        raise InvalidArgument("parameters", None, rule)
    return found


def _number(config: Mapping[str, Any], field: str) -> int:
    value = config.get(field)
    return value if isinstance(value, int) and value > 0 else 0


def _dense(config: dict[str, Any], family: Dense, name: str) -> Weights:
    shape = ModelShape.from_config({**config, "model_type": "llama"}, name=name)
    tied = bool(config.get("tie_word_embeddings", family.tied))
    hidden, width = shape.hidden_size, shape.num_heads * shape.head_dim
    table, layers = shape.vocab_size * hidden, shape.num_layers
    biased = bool(config.get("attention_bias", family.qkv_bias)) or family.qkv_bias
    split = 2 * hidden * width + 3 * hidden * shape.intermediate_size + biased * width
    per_head = 2 * shape.head_dim * (hidden + biased)
    copied = family.norms * hidden + _extra_norms(shape, family)
    if biased and not family.qkv_bias:
        copied += hidden
    if config.get("mlp_bias"):
        split, copied = split + 2 * shape.intermediate_size, copied + hidden
    return Weights(
        num_layers=layers,
        split=layers * split,
        per_kv_head=layers * per_head,
        num_kv_heads=shape.num_kv_heads,
        copied=layers * copied,
        embedding=table,
        head=0 if tied else table,
        final_norm=hidden,
        source=COMPUTED,
        tied=tied,
    )


def _extra_norms(shape: ModelShape, family: Dense) -> int:
    if family.full_norms:
        return (shape.num_heads + shape.num_kv_heads) * shape.head_dim
    return 2 * shape.head_dim if family.head_norms else 0

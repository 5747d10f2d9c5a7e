"""Configs that describe each layer for itself: overrides by layer, lists, and DeciLM's blocks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvlab.arithmetic import storage
from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import flag, listed, refuse, table
from kvlab.arithmetic.families import attention, windowed
from kvlab.arithmetic.storage import LayerStorage

PER_LAYER_LISTS = {
    "num_key_value_heads_per_layer": "num_key_value_heads",
    "num_attention_heads_per_layer": "num_attention_heads",
    "indexer_types": "indexer_type",
}
"""Lists with one entry a layer, and the field that each entry replaces."""

SCALARS = ("num_key_value_heads", "num_kv_heads", "num_query_heads", "sliding_window", "head_dim")
"""Fields that some configs write as a list with one entry a layer."""


def layer_view(config: Config, index: int, type_name: str) -> Config:
    """Return the config as layer `index` sees it.

    >>> fields = {"head_dim": 256, "per_layer_config": {"05": {"head_dim": 512}}}
    >>> layer_view(Config(fields, []), 5, "full_attention").count("head_dim")
    512
    """
    changes: dict[str, Any] = {}
    for source, target in PER_LAYER_LISTS.items():
        values = listed(config, source)
        if values is not None and index >= len(values):
            raise refuse(config, source, "must have one entry for each layer")
        _pick(values, index, target, changes)
    for field in SCALARS:
        target = "num_attention_heads" if field == "num_query_heads" else field
        _pick(config.raw.get(field), index, target, changes)
    changes |= _global_heads(config, type_name)
    changes |= _compression(config, type_name)
    changes |= _own_entry(config, index)
    return config.overlay(changes) if changes else config


def _pick(values: object, index: int, target: str, changes: dict[str, Any]) -> None:
    if isinstance(values, (list, tuple)) and index < len(values):
        changes[target] = values[index]


def _own_entry(config: Config, index: int) -> dict[str, Any]:
    """An entry of `per_layer_config`: a list, or a dict whose keys are numbers or texts."""
    entries = config.raw.get("per_layer_config") or {}
    if isinstance(entries, (list, tuple)):
        entries = dict(enumerate(entries))
    if not isinstance(entries, Mapping):
        raise refuse(config, "per_layer_config", "must be an object or a list, one entry a layer")
    found = next((v for k, v in entries.items() if str(k).isdigit() and int(k) == index), None)
    if not isinstance(found, Mapping | None):
        raise refuse(config, "per_layer_config", "must hold an object for each layer")
    return dict(found or {})


def _global_heads(config: Config, type_name: str) -> dict[str, Any]:
    """Gemma 4: full layers have heads of their own, fewer where a key serves as value."""
    if type_name != "full_attention" or "per_layer_config" in config.raw:
        return {}
    changes = {}
    if config.raw.get("global_head_dim") is not None or config.model_type.startswith("gemma4"):
        changes["head_dim"] = config.raw.get("global_head_dim", 512)
    heads = config.raw.get("num_global_key_value_heads")
    if heads is not None and flag(config, "attention_k_eq_v", default=True):
        changes["num_key_value_heads"] = heads
    return changes


def _compression(config: Config, type_name: str) -> dict[str, Any]:
    """DeepSeek-V4: how many tokens are pressed into one entry, by layer type."""
    default = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    if type_name not in default:
        return {}
    rates = table(config, "compress_rates") or default
    if type_name not in rates:
        raise refuse(config, "compress_rates", f"must give a rate for {type_name}")
    sparse = type_name == "compressed_sparse_attention"
    return {"compress_rate": rates[type_name], "compress_indexed": sparse}


def block_stores(config: Config) -> list[LayerStorage] | None:
    """Return the stores of a config that lists its blocks (DeciLM), or None for any other.

    KV heads are query heads / `n_heads_in_group`; a block may have no attention at all, or a
    linear layer in its place.

    >>> blocks = [{"attention": {"n_heads_in_group": 8}}, {"attention": {"no_op": True}}]
    >>> fields = {"num_attention_heads": 64, "hidden_size": 8192, "block_configs": blocks}
    >>> [(s.kind, s.num_kv_heads) for s in block_stores(Config(fields, []))]
    [('full', 8), ('none', 0)]
    """
    blocks = listed(config, "block_configs")
    if blocks is None:
        return None
    return [replace(_block_store(config, block), index=i) for i, block in enumerate(blocks)]


def _block_store(config: Config, block: Mapping[str, Any]) -> LayerStorage:
    fields = (block.get("attention") or {}) if isinstance(block, Mapping) else None
    if not isinstance(fields, Mapping):
        raise refuse(config, "block_configs", "must hold an object for each layer")
    if fields.get("no_op") or fields.get("replace_with_linear"):
        return LayerStorage(0, storage.NONE)
    group = Config({"n_heads_in_group": fields.get("n_heads_in_group")}, config.notes)
    heads = config.count("num_attention_heads") // group.count("n_heads_in_group")
    heads = fields.get("num_key_value_heads") or heads
    view = config.overlay({"num_key_value_heads": heads})
    if window := fields.get("window_length"):
        return windowed(view.overlay({"sliding_window": window}))[0]
    return attention(view)

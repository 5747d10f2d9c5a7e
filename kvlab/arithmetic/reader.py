"""From a config of any family to the stores of its layers: one road for every model.

text config -> one type name a layer -> what each type stores -> what is shared -> notes.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvlab.arithmetic import storage
from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import few, flag
from kvlab.arithmetic.config_source import find_config
from kvlab.arithmetic.families import cross, stores_of
from kvlab.arithmetic.layer_blocks import block_stores, layer_view
from kvlab.arithmetic.layer_lists import layer_order
from kvlab.arithmetic.layer_types import layer_types
from kvlab.arithmetic.sharing import sharing_layers
from kvlab.arithmetic.storage import LayerStorage, ModelStorage
from kvlab.arithmetic.text_block import text_config
from kvlab.arithmetic.unknown_types import describe_unknown


def read_model(
    source: "Mapping[str, Any] | str | Path",
    *,
    name: str | None = None,
    include_mtp: bool = False,
    allow_hub: bool = False,
) -> ModelStorage:
    """Return the stores of a model, from its config alone.

    `source` is a config (a dict), a path to a config.json or to its folder, a name in the
    catalogue, or a hub id, for which the network is asked only with `allow_hub`. Layers for
    multi-token prediction count only with `include_mtp`. Raises `InvalidArgument` naming a field
    that is missing or wrong.

    >>> model = read_model({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
    ...                     "num_attention_heads": 8, "num_key_value_heads": 2})
    >>> model.elements_per_token, model.notes
    (64, ())
    """
    found_name, raw = find_config(source, allow_hub=allow_hub)
    notes: list[str] = []
    config = text_config(raw, notes)
    layers = _layers(config)
    first = layers[-1].index + 1
    layers += _mtp_layers(config, first) if include_mtp else _mtp_note(config)
    describe_unknown(config, layers)
    heads = config.value("num_attention_heads")
    hidden, positions = config.written("hidden_size"), config.written("max_seq_len")
    dtype = config.written("dtype")
    return ModelStorage(
        name=name or found_name,
        model_type=config.model_type,
        layers=tuple(layers),
        notes=tuple(notes),
        num_heads=heads if isinstance(heads, int) else None,
        hidden_size=hidden if isinstance(hidden, int) else None,
        max_seq_len=positions if isinstance(positions, int) else None,
        weights_dtype=dtype if isinstance(dtype, str) else None,
        text_block=config.block.rstrip("."),
    )


def _layers(config: Config) -> list[LayerStorage]:
    listed = block_stores(config)
    if listed is not None:
        return listed
    types = layer_types(config)
    shared = sharing_layers(config, types)
    with_source = flag(config, "is_encoder_decoder") or flag(config, "add_cross_attention")
    alike: dict[str, list[LayerStorage]] = {}
    layers: list[LayerStorage] = []
    for place, index in enumerate(layer_order(config, len(types))):
        view = layer_view(config, index, types[index])
        stores = [LayerStorage(0, storage.SHARED)] if index in shared else []
        if not stores and view is config:
            stores = alike.get(types[index]) or stores_of(config, types[index])
            alike[types[index]] = stores
        stores = stores or stores_of(view, types[index])
        if with_source:
            stores = [*stores, *cross(config)]
        layers += [replace(store, index=place) for store in stores]
    return layers


MTP_FIELDS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")


def _mtp_count(config: Config) -> int:
    if flag(config, "use_mtp") and config.has("num_mtp_modules"):
        each = few(config, "mtp_transformer_layers", default=1)
        return few(config, "num_mtp_modules") * each
    return next((few(config, key) for key in MTP_FIELDS if config.optional(key)), 0)


def _mtp_note(config: Config) -> list[LayerStorage]:
    if count := _mtp_count(config):
        config.note(f"{count} layer(s) for multi-token prediction are not counted")
    return []


def _mtp_layers(config: Config, first: int) -> list[LayerStorage]:
    """Layers for multi-token prediction attend like the model's last attention layer."""
    count = _mtp_count(config)
    types = [name for name in layer_types(config) if "attention" in name and "linear" not in name]
    if not count or not types:
        return []
    last_type = types[-1]
    config.note(f"{count} layer(s) for multi-token prediction are counted")
    stores = stores_of(layer_view(config, first - 1, last_type), last_type)
    return [replace(s, index=first + i) for i in range(count) for s in stores]

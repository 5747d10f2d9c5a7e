"""Finding the language model inside a config: multimodal configs nest it under several names."""

from collections.abc import Mapping
from typing import Any

from kvlab.arithmetic.config_fields import SPELLINGS, Config
from kvlab.errors import InvalidArgument

TEXT_BLOCKS = (
    "text_config",
    "language_config",
    "llm_config",
    "thinker_config",
    "language_model_config",
    "text_model_config",
    "lm_config",
    "decoder_config",
    "decoder",
    "llm",
    "language_model",
)
"""Keys under which configs nest their language model, in the order in which they are tried."""

NOT_TEXT = ("vision", "visual", "audio", "image", "video", "speech", "quantization", "rope", "vq")


def text_config(raw: object, notes: list[str]) -> Config:
    """Return the fields of the language model of a config, and note which block they are from.

    Raises `InvalidArgument` for what is no config at all.

    >>> notes: list[str] = []
    >>> text_config({"num_hidden_layers": 33, "text_config": {"num_hidden_layers": 40}}, notes)\
.count("num_hidden_layers")
    40
    >>> notes
    ['the language model was read from text_config']
    """
    if not isinstance(raw, Mapping):
        raise InvalidArgument("config", raw, "must be a JSON object, the content of config.json")
    path: list[str] = []
    block: Mapping[str, Any] = raw
    while (name := _nested_name(block)) is not None:
        path.append(name)
        block = {**_inherited(block), **block[name]}
    if not path:
        return Config(raw, notes)
    notes.append(f"the language model was read from {'.'.join(path)}")
    block = {"model_type": _own_type(raw, path), **block}
    return Config(block, notes, nested=True, block=f"{'.'.join(path)}.")


def _nested_name(block: Mapping[str, Any]) -> str | None:
    for name in TEXT_BLOCKS:
        if isinstance(block.get(name), Mapping):
            return name
    if _has_layers(block):
        return None
    return next((key for key, part in block.items() if _is_language_model(key, part)), None)


def _is_language_model(key: str, part: object) -> bool:
    if not isinstance(part, Mapping) or any(word in key for word in NOT_TEXT):
        return False
    return _has_layers(part)


def _has_layers(block: Mapping[str, Any]) -> bool:
    return any(block.get(key) is not None for key in SPELLINGS["num_hidden_layers"])


def _inherited(block: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that a nesting config may write once for all its parts."""
    keys = ("torch_dtype", "dtype", "sliding_window", "model_max_length")
    return {key: block[key] for key in keys if block.get(key) is not None}


def _own_type(raw: Mapping[str, Any], path: list[str]) -> str:
    return f"{raw.get('model_type', '')}_text" if path else ""

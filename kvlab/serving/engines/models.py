"""Where the models of an engine lie, and what they store; a model is a name of ours or a folder."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import ModelStorage
from kvlab.errors import InvalidArgument, ModelUnavailable
from kvlab.serving.engines.random_llama import KV_HEADS, random_config, random_folder


def config_of(model: str) -> dict[str, Any]:
    """Return the config of a model: of ours without its weights, else of its folder or .gguf file.

    >>> config_of("smollm2")["num_hidden_layers"], config_of("tiny")["vocab_size"]
    (30, 256)
    """
    from kvlab.model.bundled import bundled_folder, is_bundled

    if model in KV_HEADS:
        return random_config(model)
    if model.lower() == "smollm2":
        return dict(find_model("smollm2").config)
    if is_gguf(model):
        path = gguf_file(model)
        return dict(_gguf_config(path, path.stat().st_mtime_ns))
    folder = bundled_folder(model) if is_bundled(model) else Path(model).expanduser()
    path = folder / "config.json"
    if not path.is_file():
        rule = (
            "must be smollm2, a bundled or random model, a folder with a config.json, or (llama.cpp"
            " alone) a .gguf file"
        )
        raise InvalidArgument("model", model, rule)
    return dict(json.loads(path.read_text(encoding="utf-8")))


def storage_of(model: str) -> ModelStorage:
    """Return what a model stores, read from its config alone.

    >>> storage_of("tiny").num_layers
    2
    """
    return read_model(config_of(model), name=Path(model).name)


def model_folder(model: str) -> Path:
    """Return the folder with a model's config, weights and tokenizer, which vLLM reads as it is."""
    from kvlab.model.find import find_folder

    return random_folder(model) if model in KV_HEADS else find_folder(model)[1]


def vocab_size_of(model: str) -> int:
    """Return the tokens of a model's vocabulary.

    >>> vocab_size_of("tiny")
    256
    """
    return int(config_of(model)["vocab_size"])


def is_gguf(model: str) -> bool:
    """Whether a model is named as the path of a GGUF file, there or not.

    >>> is_gguf("x.gguf"), is_gguf("smollm2")
    (True, False)
    """
    return Path(model).suffix.lower() == ".gguf"


@lru_cache(maxsize=4)
def _gguf_config(path: Path, changed: int) -> dict[str, Any]:
    """Read the config from a file's header; `changed` is its time, so a new file is read anew."""
    from kvlab.model.gguf_file import GgufLlama

    return GgufLlama(path).config


def gguf_file(model: str) -> Path:
    """Return the GGUF file that llama.cpp reads: SmolLM2's, or a path that is there."""
    if model.lower() != "smollm2":
        path = Path(model).expanduser()
        if not is_gguf(model) or not path.is_file():
            rule = "llama.cpp takes 'smollm2' or an existing .gguf file"
            raise InvalidArgument("model", model, rule)
        return path
    from kvlab._paths import user_dir
    from kvlab.model.fetch import GGUF
    from kvlab.model.weights import ensure_smollm2

    ensure_smollm2()
    path = user_dir() / "gguf" / GGUF.name
    if not path.is_file():
        raise ModelUnavailable(f"{path} is gone; empty {user_dir()} and run kvlab fetch smollm2")
    return path

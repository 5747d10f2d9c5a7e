"""A tiny Llama as a Hugging Face folder, and ways to change it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tiny_gguf import write_gguf

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
Q_PROJ = "model.layers.1.self_attn.q_proj.weight"


def write_folder(folder: Path) -> Path:
    """Make `folder` and write config, tokenizer and weights into it."""
    from kvlab.model.gguf_file import GgufLlama

    folder.mkdir()
    gguf = write_gguf(folder / "x.gguf")
    for name, chunks in GgufLlama(gguf).files():
        (folder / name).write_bytes(b"".join(bytes(chunk) for chunk in chunks))
    gguf.unlink()
    return folder


def edit_json(path: Path, **changes: Any) -> None:
    """Change some values of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_weights(folder: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Read the weights, let `edit` change them in place, write them back."""
    weights = {name: tensor.clone() for name, tensor in load_file(folder / WEIGHTS).items()}
    edit(weights)
    save_file(weights, folder / WEIGHTS)


def shard(folder: Path) -> list[Path]:
    """Split the weights into two files and an index; return the two."""
    weights = load_file(folder / WEIGHTS)
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[::2]}
    parts["model-00002-of-00002.safetensors"] = names[1::2]
    for file, members in parts.items():
        save_file({name: weights[name].clone() for name in members}, folder / file)
    weight_map = {name: file for file, members in parts.items() for name in members}
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    (folder / WEIGHTS).unlink()
    return [folder / file for file in parts]

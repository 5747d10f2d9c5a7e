"""A model folder in Hugging Face's format: which files hold the weights, and are they whole?

safetensors only. Pickles and folders that bring code are refused: reading them would run it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kvlab.arithmetic.units import format_bytes
from kvlab.errors import (
    InvalidArgument,
    ModelUnavailable,
    NotVerified,
    UnsafeCheckpoint,
    Unsupported,
    is_out_of_memory,
)
from kvlab.model.config import LlamaConfig
from kvlab.model.tokenizer import read_json

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
INDEX = "model.safetensors.index.json"
Shape = tuple[int, ...]


def read_config(folder: Path) -> LlamaConfig:
    """Return the folder's config; raises `UnsafeCheckpoint` where it asks for its own code."""
    path = folder / "config.json"
    if not path.is_file():
        raise InvalidArgument("name_or_path", str(folder), "holds no config.json")
    config = read_json(path)
    if config.get("auto_map"):
        rule = "asks for code of its own (auto_map); kvlab runs no code from a checkpoint"
        raise UnsafeCheckpoint(f"{path}: {rule}")
    return LlamaConfig.from_hf(config)


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a folder: those in the index, or the only one there is."""
    if (folder / INDEX).is_file():
        return _indexed(folder)
    found = sorted(path for path in folder.glob("*.safetensors") if path.is_file())
    named = [path for path in found if path.name == "model.safetensors"]
    if named or len(found) == 1:
        return named or found
    if found:
        rule = f"holds {len(found)} safetensors files and no {INDEX} to say which belong together"
        raise InvalidArgument("name_or_path", str(folder), rule)
    pickles = [path.name for path in sorted(folder.iterdir()) if path.suffix.lower() in PICKLES]
    if pickles:
        raise UnsafeCheckpoint(f"{folder / pickles[0]}: {PICKLE_RULE}")
    raise InvalidArgument("name_or_path", str(folder), "holds no *.safetensors file")


PICKLE_RULE = "a pickle can run code when it is read; kvlab reads safetensors only"


def _indexed(folder: Path) -> list[Path]:
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise InvalidArgument(
            "weight_map", weight_map, f"{folder / INDEX} must map tensors to files"
        )
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise UnsafeCheckpoint(
                f"{folder / INDEX}: {name!r} is no safetensors file of this folder"
            )
        if not (folder / name).is_file():
            raise NotVerified(f"{folder / name}: missing, though {INDEX} names it; fetch it again")
    return [folder / name for name in names]


@contextmanager
def open_weights(path: Path) -> Iterator[Any]:
    """Open one safetensors file, mapped into memory; raises `NotVerified` when it is not whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as weights:
            yield weights
    except (SafetensorError, OSError) as error:
        rule = "not a whole safetensors file; fetch or copy it again"
        raise NotVerified(f"{path}: {rule} ({error})") from None
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        need = format_bytes(path.stat().st_size)
        raise ModelUnavailable(
            f"{path}: not enough memory for its {need}; close other programs, or try 'tiny'"
        ) from None


def load_tensors(
    files: list[Path], wanted: Mapping[str, Shape], device: torch.device, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Return every wanted tensor on `device` in `dtype`, after all names and shapes were checked.

    On the CPU in the file's own dtype the numbers stay mapped: nothing is copied, and two kernels
    share them. Otherwise one tensor at a time is converted.
    """
    check_names(files, wanted)
    tensors: dict[str, Tensor] = {}
    for path in files:
        with open_weights(path) as weights:
            for name in weights.keys():  # noqa: SIM118  (not a dict)
                if name in wanted:
                    tensors[name] = weights.get_tensor(name).to(device=device, dtype=dtype)
    return tensors


def check_names(files: list[Path], wanted: Mapping[str, Shape]) -> None:
    """Read the headers alone; raise on a missing, unknown, misshapen or packed tensor."""
    found: set[str] = set()
    for path in files:
        with open_weights(path) as weights:
            for name in weights.keys():  # noqa: SIM118  (not a dict)
                if name in wanted:
                    _check_tensor(path, name, weights.get_slice(name), wanted[name])
                elif not _is_harmless(name):
                    raise Unsupported(f"{path}: tensor {name!r} has no place in a Llama")
                found.add(name)
    missing = sorted(wanted.keys() - found)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        rule = f"no tensor {missing[0]!r}{more}, which config.json asks for"
        raise InvalidArgument("name_or_path", str(files[0].parent), rule)


def check_depth(files: list[Path], num_layers: int) -> None:
    """Raise `InvalidArgument` unless the files hold the last of `num_layers` layers.

    Asked before a model is built: building takes time and memory for every layer of a config.
    """
    last = f"model.layers.{num_layers - 1}."
    for path in files:
        with open_weights(path) as weights:
            if any(name.startswith(last) for name in weights.keys()):  # noqa: SIM118
                return
    rule = f"no tensor of {files[0].parent} is called {last}*"
    raise InvalidArgument("num_hidden_layers", num_layers, rule)


def _check_tensor(path: Path, name: str, tensor: Any, shape: Shape) -> None:
    if tensor.get_dtype() not in ("F32", "F16", "BF16", "F64"):
        raise Unsupported(f"{path}: {name!r} is {tensor.get_dtype()}; packed weights are not read")
    if tuple(tensor.get_shape()) != shape:
        rule = f"config.json asks for shape {shape}, the file has {tuple(tensor.get_shape())}"
        raise InvalidArgument("tensor", name, rule)


def _is_harmless(name: str) -> bool:
    """Old files store the rotary frequencies, and tied models may store their head twice."""
    return name.endswith("rotary_emb.inv_freq") or name == "lm_head.weight"

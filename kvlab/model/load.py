"""One door to every model: `load_model` by name, folder or hub id.

Loading the same model again gives the one already in memory, as long as someone holds it or it is
small and was used lately; so a cell that is run three times does not fill the memory.
"""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from kvlab.arithmetic.units import GIB
from kvlab.errors import InvalidArgument
from kvlab.model.checkpoint import check_depth, load_tensors, read_config, weight_files
from kvlab.model.device import choose_device, choose_dtype
from kvlab.model.find import find_folder
from kvlab.model.llama import Llama
from kvlab.model.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A Llama ready to run, with its tokenizer; `source` is the folder it was read from."""

    model: Llama
    tokenizer: Tokenizer
    name: str
    device: torch.device
    dtype: torch.dtype
    source: Path

    def encode(self, text: str) -> Tensor:
        """Return the token ids of `text` as (1, num_tokens) on the model's device.

        Raises `InvalidArgument` for an empty text: a model needs at least one token.
        """
        ids = self.tokenizer.encode(text)
        if not ids:
            raise InvalidArgument("text", text, "must give at least one token")
        return torch.tensor([ids], device=self.device)

    def decode(self, ids: Tensor | Iterable[int], *, skip_special: bool = True) -> str:
        """Return the text of token ids, given as a list or as a tensor of one sequence."""
        numbers = ids.flatten().tolist() if isinstance(ids, Tensor) else ids
        return self.tokenizer.decode(numbers, skip_special=skip_special)

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Return the token ids after which the model has finished."""
        return self.tokenizer.stop_ids

    @property
    def num_parameters(self) -> int:
        """Return how many numbers the model was trained to hold; a tied head counts once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def nbytes(self) -> int:
        """Return the bytes of the weights in memory."""
        return self.num_parameters * self.dtype.itemsize

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.name}: {self.num_parameters:,} parameters, {dtype} on {self.device}"


_alive: "WeakValueDictionary[tuple[object, ...], LoadedModel]" = WeakValueDictionary()
_recent: deque[LoadedModel] = deque(maxlen=2)
_lock = threading.RLock()


def load_model(
    name_or_path: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> LoadedModel:
    """Return a model by name (`smollm2`, `tiny`), folder or hub id; names in any case.

    `device` and `dtype` default to `choose_device()` and `choose_dtype(device)`. A model that is
    not here is fetched with a progress bar. Raises `InvalidArgument` for an unknown name or files
    that do not fit together, `ModelUnavailable` when it can't be had, `NotVerified` for damaged
    files and `UnsafeCheckpoint` for files that could run code.
    """
    chosen = choose_device(device)
    kind = choose_dtype(chosen, dtype)
    with _lock:
        name, folder = find_folder(name_or_path)
        files = weight_files(folder)
        key = (folder.resolve(), str(chosen), kind, _stamps([folder / "config.json", *files]))
        loaded = _alive.get(key)
        if loaded is None:
            model = _read_model(folder, files, chosen, kind)
            loaded = LoadedModel(model, Tokenizer(folder), name, chosen, kind, folder)
            _alive[key] = loaded
        if loaded.nbytes < GIB and loaded not in _recent:
            _recent.append(loaded)
        return loaded


def forget_models() -> None:
    """Let go of the small models kept for reuse; memory is freed once nobody else holds them."""
    _recent.clear()


def _stamps(files: Iterable[Path]) -> tuple[tuple[int, int], ...]:
    """Return size and time of change of each file there is: a changed model is another model."""
    stats = [path.stat() for path in files if path.is_file()]
    return tuple((stat.st_size, stat.st_mtime_ns) for stat in stats)


class _Unfilled(TorchFunctionMode):
    """Skip the drawing of first weights: the file's come next, and drawing costs a second."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return (*args, *(kwargs or {}).values())[0]
        return func(*args, **(kwargs or {}))


def _read_model(folder: Path, files: list[Path], device: torch.device, dtype: torch.dtype) -> Llama:
    """Build the model without memory, then give it the file's tensors: no second copy."""
    config = read_config(folder)
    check_depth(files, config.num_layers)
    with torch.device("meta"), _Unfilled():
        model = Llama(config)
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if config.tied_embeddings:
        del wanted["lm_head.weight"]
    tensors = load_tensors(files, wanted, device, dtype)
    model.load_state_dict(tensors, assign=True)
    return model.eval().requires_grad_(False)

"""From what a prediction starts: a model and the settings of the engine, and who said them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kvlab.arithmetic.dtypes import cache_dtype
from kvlab.arithmetic.logs.facts import Run
from kvlab.arithmetic.logs.models import FoundModel, with_mtp
from kvlab.arithmetic.storage import ModelStorage
from kvlab.arithmetic.units import GIB
from kvlab.errors import InvalidArgument

DEFAULT_BLOCK = {"sglang": 1, "tensorrt-llm": 64}
"""Tokens of a block where the log does not say; 16 for the others."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that decide sizes. `assumed` names those that the log does not say.

    `max_batched_tokens` None: the usual values are tried. `every_request_alike`: concurrency is
    tokens / length, which only holds when every layer keeps every token. `equal_widths`: an
    engine that gives values rows as wide as keys.
    """

    engine: str = "vllm"
    platform: str = ""
    tp: int = 1
    pp: int = 1
    block_size: int = 16
    cache_dtype: str = "bf16"
    value_dtype: str | None = None
    max_model_len: int | None = None
    max_batched_tokens: int | None = None
    source_length: int | None = None
    speculative_tokens: int = 0
    swap_bytes: int = 4 * GIB
    padding_limit: float = 1.5
    every_request_alike: bool = False
    equal_widths: bool = True
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A model (None: unknown) and settings; `with_mtp` is the same model with its draft layers."""

    model: ModelStorage | None
    settings: Settings
    with_mtp: ModelStorage | None = None

    def setting(self, **changes: Any) -> "Case":
        """Return the case with some settings changed."""
        return replace(self, settings=replace(self.settings, **changes))

    def remodelled(self, change: "Callable[[ModelStorage], ModelStorage]") -> "Case":
        """Return the case with its model changed."""
        return self if self.model is None else replace(self, model=change(self.model))


def case_of(run: Run, found: FoundModel | None, given: "dict[str, Any] | None" = None) -> Case:
    """Return the case of a run. `given` are settings that win over the log's.

    >>> run = Run("vllm", ())
    >>> case_of(run, None, {"tp": 2}).settings.tp
    2
    """
    chosen = {key: value for key, value in (given or {}).items() if value is not None}
    read = {**_read_settings(run, found), **chosen}
    missing = {"tp": 1, "block_size": DEFAULT_BLOCK.get(run.engine, 16), "cache_dtype": "bf16"}
    assumed = tuple(f"{k}={v}" for k, v in missing.items() if k not in read and _matters(run, k))
    settings = Settings(**{**missing, **read, "engine": run.engine, "assumed": assumed})
    return Case(None if found is None else found.storage, settings, with_mtp(found))


def _matters(run: Run, key: str) -> bool:
    only_dtype = run.engine in ("llama.cpp", "ollama", "published size")
    return key == "cache_dtype" or not only_dtype


def _read_settings(run: Run, found: FoundModel | None) -> dict[str, Any]:
    numbers = {
        name: run.whole(name)
        for name in (
            "tp", "pp", "block_size", "max_model_len", "max_batched_tokens", "speculative_tokens",
        )
    }  # fmt: skip
    length = run.whole("concurrency_length")
    if length:
        numbers["max_model_len"] = length
    read: dict[str, Any] = {key: value for key, value in numbers.items() if value}
    if swap := run.last("swap_gib"):
        read["swap_bytes"] = int(swap.number * GIB)
    if platform := run.text("platform"):
        read["platform"] = platform
    dtype = _cache_dtype(run, found)
    return {**read, **({"cache_dtype": dtype} if dtype else {})}


def _cache_dtype(run: Run, found: FoundModel | None) -> str | None:
    """The cache follows its own option, else the dtype of the model; llama.cpp always says fp16."""
    weights = found.storage.weights_dtype if found else None
    names = [run.text("cache_dtype"), run.text("dtype"), weights]
    if run.engine in ("llama.cpp", "ollama"):
        names = [run.text("cache_dtype"), run.text("k_type"), "fp16"]
    return next((known for name in names if (known := _known(name))), None)


def _known(name: str | None) -> str | None:
    if name is None or name == "auto":
        return None
    try:
        return cache_dtype(name.replace("fp8_inc", "fp8")).name
    except InvalidArgument:
        return None

"""Whose cache a log speaks of: an option, a name in the log, or the shape that it prints."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvlab.arithmetic.catalogue import CatalogueRow, load_models
from kvlab.arithmetic.config_source import find_config
from kvlab.arithmetic.logs.facts import Run
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import FULL, LayerStorage, ModelStorage
from kvlab.errors import InvalidArgument, KvlabError

SAME_SHAPE = re.compile(
    r"-(?:instruct|chat|it|hf|base|thinking|preview|dynamic|quantized|gguf|bnb|\d\d[01]\d|"
    r"fp8|fp16|bf16|f16|awq|gptq|int[48]|w\d{1,2}a\d{1,2}|nvfp4|mxfp4|[48]bit|i?q\d\w{0,6})$"
)
"""Endings of a name that change weights or manners, never the shape of the cache."""

Source = Mapping[str, Any] | str | Path


@dataclass(frozen=True)
class FoundModel:
    """A model, its config (None: read from the log's own figures), and how it was found."""

    storage: ModelStorage
    source: "Mapping[str, Any] | None"
    how: str


def find_model_of(
    run: Run, model: str | None = None, config: "Mapping[str, Any] | str | Path | None" = None
) -> FoundModel | None:
    """Return the model whose cache `run` sizes, or None when nothing tells.

    A `config` or a `model` given wins over what the log says. Raises as `read_model` does.
    """
    if config is not None:
        source = Path(config).expanduser() if isinstance(config, str) else config
        return _read(source, "from the config given")
    if model is not None:
        return _read(model, "named on the command line")
    return _named_in_log(run) or _printed_shape(run)


def _read(source: Source, how: str) -> FoundModel:
    """Read a config once: a pipe or the hub gives it only once."""
    name, raw = find_config(source, allow_hub=True)
    return FoundModel(read_model(raw, name=name), raw, how)


def _named_in_log(run: Run) -> FoundModel | None:
    names = [str(f.value) for name in ("model", "file_name") for f in run.all(name)]
    for name in dict.fromkeys(names):
        row = catalogue_row(name)
        if row is not None:
            same = name.casefold() in (known.casefold() for known in row.names)
            how = "named in the log" if same else f"the log says {name}: taken to be of its shape"
            return _read(row.id, how)
    return None


def catalogue_row(name: str) -> CatalogueRow | None:
    """Return the one row of the catalogue that has the shape of the model called `name`.

    >>> catalogue_row("/models/Meta-Llama-3-70B-Instruct-Q4_K_M.gguf").id
    'meta-llama/Meta-Llama-3-70B'
    >>> catalogue_row("llama3:70b").id, catalogue_row("my-own-model")
    ('meta-llama/Meta-Llama-3-70B', None)
    """
    rows = _index().get(shape_key(name), ())
    return rows[0] if len(rows) == 1 else None


def shape_key(name: str) -> str:
    """Return what is left of a model's name when all that does not change its shape is gone.

    >>> shape_key("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8")
    'qwen3235ba22b'
    """
    key = name.strip().rstrip("/").rsplit("/", 1)[-1].casefold().removesuffix(".gguf")
    key = key.replace(":", "-").replace(" ", "-").replace("_", "-")
    key = re.sub(r"-i?q\d(?:-[a-z0-9]{1,2}){0,2}$", "", key)
    while (shorter := SAME_SHAPE.sub("", key)) != key:
        key = shorter
    return re.sub(r"[^a-z0-9.]", "", key)


@lru_cache(maxsize=1)
def _index() -> dict[str, tuple[CatalogueRow, ...]]:
    index: dict[str, tuple[CatalogueRow, ...]] = {}
    for row in load_models():
        for key in dict.fromkeys(shape_key(name) for name in row.names):
            index[key] = (*index.get(key, ()), row)
    return index


def _printed_shape(run: Run) -> FoundModel | None:
    """llama.cpp prints the shape that it loaded: enough for a model of equal layers."""
    layers, heads, width = (run.whole(k) for k in ("num_layers", "num_kv_heads", "k_dim"))
    if not (layers and heads and width):
        return None
    values = run.whole("v_dim") or width
    stores = tuple(LayerStorage(i, FULL, heads, width, values) for i in range(layers))
    name = run.text("model") or run.text("architecture") or "the model of the log"
    queries = run.whole("num_heads")
    return FoundModel(
        ModelStorage(name, "", stores, num_heads=queries),
        None,
        "from the figures that the log prints: all layers alike, windows not known",
    )


def models_with(bytes_per_token: float, tolerance: float, limit: int = 4) -> tuple[str, ...]:
    """Return catalogue models whose tokens take this many bytes in 16 bit.

    >>> models_with(524_288, 0.0)[0]
    'EleutherAI/pythia-6.9b'
    """
    return tuple(_with_size(load_models(), bytes_per_token, tolerance))[:limit]


def _with_size(rows: Iterable[CatalogueRow], size: float, tolerance: float) -> Iterable[str]:
    for row in rows:
        try:
            expected = 2 * read_model(row.config).elements_per_token
        except KvlabError:
            continue
        if abs(expected - size) <= tolerance * size:
            yield row.id


def with_mtp(found: FoundModel | None) -> ModelStorage | None:
    """Return the model with its layers for multi-token prediction, if it has any."""
    if found is None or found.source is None:
        return None
    try:
        model = read_model(found.source, include_mtp=True)
    except InvalidArgument:
        return None
    return model if model.num_layers > found.storage.num_layers else None

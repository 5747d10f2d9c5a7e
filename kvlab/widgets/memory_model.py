"""Which model a memory explorer shows: a preset, a pasted config, or the numbers on the sliders."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kvlab.arithmetic.catalogue import find_model, load_models
from kvlab.arithmetic.config_source import MAX_BYTES, parse
from kvlab.arithmetic.plan_dense import read_weights
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import FULL, ModelStorage, uniform_model
from kvlab.errors import InvalidArgument, KvlabError

OWN, PASTED = "your own numbers", "the pasted config.json"
SLIDERS = ("num_layers", "num_kv_heads", "head_dim")


@dataclass(frozen=True)
class ShownModel:
    """A model and how many parameters it has, None where nobody knows.

    `factors` holds the values of the three sliders when all layers are alike, else it is empty.
    """

    storage: ModelStorage
    parameters: int | None
    factors: Mapping[str, int]


@cache
def preset(name: str) -> ShownModel:
    """Return a model of the catalogue.

    >>> preset("llama-3.1-8b").factors
    {'num_layers': 32, 'num_kv_heads': 8, 'head_dim': 128}
    >>> preset("deepseek-v3").factors
    {}
    """
    storage = read_model(name)
    return ShownModel(storage, find_model(name).parameters, uniform_factors(storage))


def pasted(text: str) -> ShownModel:
    """Return the model of a pasted `config.json`; raises `KvlabError` with one readable line."""
    if not text.strip():
        raise InvalidArgument("config.json", "", "is empty: paste the content of the file")
    if len(text) > MAX_BYTES:
        raise InvalidArgument("config.json", f"{len(text):,} characters", "is too long")
    config = parse(text, "config.json")
    storage = read_model(config, name=str(config.get("_name_or_path") or "pasted model"))
    return ShownModel(storage, _parameters(config), uniform_factors(storage))


def own(num_layers: int, num_kv_heads: int, head_dim: int) -> ModelStorage:
    """Return a model of equal full layers with these factors."""
    return uniform_model(num_layers=num_layers, num_kv_heads=num_kv_heads, head_dim=head_dim)


def uniform_factors(storage: ModelStorage) -> dict[str, int]:
    """Return layers, KV heads and head_dim where one number each says all, else nothing."""
    if len(storage.counted) != 1:
        return {}
    ((layer, count),) = storage.counted
    if layer.kind != FULL or layer.k_dim != layer.v_dim or layer.index_elements:
        return {}
    return dict(zip(SLIDERS, (count, layer.num_kv_heads, layer.k_dim), strict=True))


@cache
def choices() -> tuple[tuple[str, str], ...]:
    """Return what can be chosen: own numbers, a pasted config, then every known model."""
    rows = [row for row in load_models() if row.parameters]
    named = sorted(((row.id.rsplit("/", 1)[-1], row.id) for row in rows), key=_by_name)
    return ((OWN, OWN), (PASTED, PASTED), *named)


def _by_name(choice: tuple[str, str]) -> str:
    return choice[0].casefold()


def _parameters(config: Mapping[str, Any]) -> int | None:
    try:
        return read_weights(config).parameters
    except KvlabError:
        return None

"""The catalogue of known models: `data/models.json`, read and checked row by row.

A row carries the fields of the model's own `config.json`, so that any architecture fits: what a
config means is decided by the functions that read it, not here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kvlab._paths import data_dir
from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.shapes import SUPPORTED_MODEL_TYPES, ModelShape
from kvlab.errors import InvalidArgument, KvlabError

FIELDS = ("id", "aliases", "parameters", "config", "confidence", "sources", "as_of")
CONFIDENCE = ("verified", "secondary", "not verified")


@dataclass(frozen=True)
class CatalogueRow:
    """One model: its hub id, other names, its config fields, where they are from and when.

    `parameters` counts all weights, computed from the config; None where it could not be.
    `confidence` says how the fields were found: one of `CONFIDENCE`.
    """

    id: str
    aliases: tuple[str, ...]
    config: Mapping[str, Any]
    sources: tuple[str, ...]
    as_of: date
    parameters: int | None = None
    confidence: str = "verified"

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it goes by: the id, the aliases, and each of them without its owner."""
        full = (self.id, *self.aliases)
        return tuple(dict.fromkeys((*full, *(name.rsplit("/", 1)[-1] for name in full))))


def load_models(path: Path | None = None) -> tuple[CatalogueRow, ...]:
    """Return every row of the catalogue (or of the file at `path`), checked.

    Raises `InvalidArgument` naming the file, the row and the field at fault.

    >>> [row.id for row in load_models()][0]
    'HuggingFaceTB/SmolLM2-135M-Instruct'
    """
    return _load(path or data_dir() / "models.json")


def find_model(name: str) -> CatalogueRow:
    """Return the row called `name`: a hub id, an alias or a short name, in any case.

    Raises `InvalidArgument` with the closest names when there is none.

    >>> find_model("llama-3.1-70b").id
    'meta-llama/Llama-3.1-70B'
    """
    index = _default_index(data_dir() / "models.json")
    row = index.get(_key(name))
    if row is None:
        raise InvalidArgument("model", name, _not_found(name, index))
    return row


def model_shape(name: str) -> ModelShape:
    """Return the shape of the model called `name` in the catalogue, or of a model folder.

    >>> model_shape("smollm2").num_kv_heads
    3
    """
    folder = Path(name).expanduser() if isinstance(name, str) else None
    if folder is not None and (folder / "config.json").is_file():
        return ModelShape.from_config(_read_json(folder / "config.json"), name=str(name))
    row = find_model(name)
    return ModelShape.from_config(row.config, name=row.id)


@lru_cache(maxsize=8)
def _default_index(path: Path) -> dict[str, CatalogueRow]:
    return _index(_load(path))


@lru_cache(maxsize=8)
def _load(path: Path) -> tuple[CatalogueRow, ...]:
    document = _read_json(path)
    rows = document.get("models")
    if not isinstance(rows, list) or not rows:
        raise InvalidArgument(f"{path.name}: models", rows, "must be a list of one row or more")
    parsed = tuple(_parse_row(f"{path.name} row {i + 1}", row) for i, row in enumerate(rows))
    _index(parsed)
    return parsed


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise KvlabError(f"cannot read {path.name}: {error}") from error
    if not isinstance(document, dict):
        raise InvalidArgument(path.name, document, "must hold a JSON object")
    return document


def _parse_row(where: str, row: object) -> CatalogueRow:
    if not isinstance(row, dict):
        raise InvalidArgument(where, row, "must be an object")
    where = f"{where} ({row.get('id', 'no id')})"
    if unknown := set(row) - set(FIELDS):
        raise InvalidArgument(f"{where}, field", sorted(unknown)[0], f"is none of {FIELDS}")
    aliases = _texts(where, row, "aliases", minimum=0)
    sources = _texts(where, row, "sources", minimum=1)
    config = _config(where, row.get("config"))
    model_id = _texts(where, {"id": [row.get("id")]}, "id", minimum=1)[0]
    day, parameters = _day(where, row.get("as_of")), row.get("parameters")
    if parameters is not None:
        whole_number(f"{where}, parameters", parameters)
    confidence = row.get("confidence", CONFIDENCE[0])
    if confidence not in CONFIDENCE:
        raise InvalidArgument(f"{where}, confidence", confidence, f"is none of {CONFIDENCE}")
    return CatalogueRow(model_id, aliases, config, sources, day, parameters, confidence)


def _texts(where: str, row: dict[str, Any], field: str, *, minimum: int) -> tuple[str, ...]:
    values = row.get(field)
    if not isinstance(values, list) or len(values) < minimum:
        rule = f"must be a list of {minimum} text(s) or more"
        raise InvalidArgument(f"{where}, {field}", values, rule)
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise InvalidArgument(f"{where}, {field}", value, "must be text and not empty")
    return tuple(values)


def _config(where: str, config: object) -> Mapping[str, Any]:
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise InvalidArgument(f"{where}, config", config, "must be an object with a model_type")
    if config["model_type"] in SUPPORTED_MODEL_TYPES:
        try:
            ModelShape.from_config(config)
        except InvalidArgument as error:
            argument = f"{where}, {error.argument}"
            raise InvalidArgument(argument, error.value, error.rule) from None
    return MappingProxyType(config)


def _day(where: str, value: object) -> date:
    try:
        return date.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{where}, as_of", value, "must be a day such as 2026-11-30"
        ) from None


def _key(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument("model", name, "must be the name of a model")
    return name.strip().casefold().replace("_", "-").replace(" ", "-")


def _index(rows: tuple[CatalogueRow, ...]) -> dict[str, CatalogueRow]:
    index: dict[str, CatalogueRow] = {}
    for row in rows:
        for name in row.names:
            other = index.setdefault(_key(name), row)
            if other is not row:
                rule = f"is also a name of {other.id}"
                raise InvalidArgument(f"{row.id}, name", name, rule)
    return index


def _not_found(name: str, index: dict[str, CatalogueRow]) -> str:
    close = get_close_matches(_key(name), index, n=3, cutoff=0.5)
    ids = dict.fromkeys(index[key].id for key in close)
    if ids:
        return f"no such model in the catalogue; close: {', '.join(ids)}"
    some = dict.fromkeys(row.id for row in index.values())
    known = ", ".join(list(some)[:5])
    return f"no such model in the catalogue; it knows {known}, or short: llama-3.1-70b"

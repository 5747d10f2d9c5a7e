"""The GPUs of the course: `data/gpus.json`, read and checked row by row.

Memory as marketed and as the driver reports it are two fields, because they are two numbers.
"""

import json
from dataclasses import dataclass, fields
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.errors import InvalidArgument, KvlabError


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. Bandwidth and links in GB/s (decimal), dense rates in TFLOPS (int8: TOPS).

    `marketed_bytes` is the number on the box, `driver_bytes` what the driver reports.
    `nvlink_gb_s` counts both directions. None means that the card has no such thing.
    """

    name: str
    aliases: tuple[str, ...]
    architecture: str
    marketed_bytes: int
    driver_bytes: int
    memory_type: str
    bandwidth_gb_s: float
    bf16_tflops: float | None
    fp16_tflops: float | None
    fp8_tflops: float | None
    int8_tops: float | None
    nvlink_gb_s: float | None
    pcie: str
    watts: int
    note: str
    sources: dict[str, str]
    as_of: date

    @property
    def matrix_tflops(self) -> float:
        """The dense 16-bit rate: bf16 where the card has it, else fp16."""
        return self.bf16_tflops or self.fp16_tflops or 0.0

    @property
    def ridge_flop_per_byte(self) -> float:
        """FLOPs for each byte read at which 16-bit work and memory take the same time."""
        return self.matrix_tflops * 1e12 / (self.bandwidth_gb_s * 1e9)


def load_gpus(path: Path | None = None) -> tuple[Gpu, ...]:
    """Return every GPU of the catalogue (or of the file at `path`), checked.

    Raises `InvalidArgument` naming the file, the row and the field at fault.

    >>> len(load_gpus()) >= 18
    True
    """
    return _load(path or data_dir() / "gpus.json")


def find_gpu(name: str) -> Gpu:
    """Return the GPU called `name`, in any case; H100 alone is the SXM5 card.

    Raises `InvalidArgument` with the closest names when there is none.

    >>> find_gpu("h100").name, find_gpu("H100").driver_bytes
    ('H100 SXM5', 85520809984)
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument("gpu", name, "must be the name of a GPU")
    index = {_key(alias): gpu for gpu in load_gpus() for alias in (gpu.name, *gpu.aliases)}
    found = index.get(_key(name))
    if found is None:
        close = get_close_matches(_key(name), index, n=3, cutoff=0.4)
        near = ", ".join(dict.fromkeys(index[key].name for key in close))
        rule = f"no such GPU in the catalogue; {f'close: {near}; ' if near else ''}"
        rule += f"it has {', '.join(gpu.name for gpu in load_gpus())}"
        raise InvalidArgument("gpu", name, rule)
    return found


def _key(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@lru_cache(maxsize=8)
def _load(path: Path) -> tuple[Gpu, ...]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise KvlabError(f"cannot read {path.name}: {error}") from error
    rows = document.get("gpus") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        raise InvalidArgument(f"{path.name}: gpus", rows, "must be a list of one row or more")
    return tuple(_parse(f"{path.name} row {i + 1}", row) for i, row in enumerate(rows))


TEXTS = ("name", "architecture", "memory_type", "pcie", "note")
NUMBERS = ("marketed_bytes", "driver_bytes", "bandwidth_gb_s", "watts")
SOURCED = ("driver_bytes", "bandwidth_gb_s", "matrix_rates")


def _parse(where: str, row: object) -> Gpu:
    if not isinstance(row, dict):
        raise InvalidArgument(where, row, "must be an object")
    where = f"{where} ({row.get('name', 'no name')})"
    names = {field.name for field in fields(Gpu)}
    for field in sorted(names ^ set(row)):
        rule = "is missing" if field in names else "is no field of a GPU"
        raise InvalidArgument(f"{where}, {field}", row.get(field), rule)
    for field in names:
        _check(f"{where}, {field}", field, row[field])
    return Gpu(**{**row, "aliases": tuple(row["aliases"]), "as_of": _day(where, row["as_of"])})


def _check(where: str, field: str, value: Any) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    if field in TEXTS and not isinstance(value, str):
        raise InvalidArgument(where, value, "must be text")
    if field in NUMBERS and not number:
        raise InvalidArgument(where, value, "must be a number above 0")
    if field.endswith(("tflops", "tops", "nvlink_gb_s")) and not (number or value is None):
        raise InvalidArgument(where, value, "must be a number above 0, or null")
    if field == "aliases" and not _all_text(value):
        raise InvalidArgument(where, value, "must be a list of texts")
    if field == "sources" and not _has_sources(value):
        raise InvalidArgument(where, value, f"must name a source for each of {SOURCED}")


def _all_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _has_sources(value: object) -> bool:
    return isinstance(value, dict) and all(value.get(field) for field in SOURCED)


def _day(where: str, value: object) -> date:
    try:
        return date.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        rule = "must be a day such as 2026-11-30"
        raise InvalidArgument(f"{where}, as_of", value, rule) from None

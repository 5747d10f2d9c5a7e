"""Numbers that real engines printed, with what each must show: `data/engine_logs.json`, checked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.arithmetic.logs.report import LogReport, explain_log
from kvlab.errors import InvalidArgument, KvlabError

USES = ("assert", "consistency", "anomaly", "explain_only")
NEEDED = ("id", "engine", "about", "source", "as_of", "use", "lines", "checks")


@dataclass(frozen=True)
class EngineRow:
    """Lines of one start of an engine, whose cache they size, and what must come out.

    `checks`: a number as printed, and the relative error that the printed digits allow.
    `naive`: a formula of `naive.NAIVE` and the wrong number that it gives. `pitfalls`: such a
    formula and its factor on the bytes of a token. `says`: words that the explanation must have.
    `inferred`: what was found from the same numbers, so that agreeing proves less.
    """

    id: str
    engine: str
    about: str
    source: str
    as_of: str
    use: str
    lines: tuple[str, ...]
    checks: tuple[Mapping[str, Any], ...]
    model: str | None = None
    config: Mapping[str, Any] | None = None
    version: str | None = None
    inferred: str | None = None
    naive: tuple[Mapping[str, Any], ...] = ()
    pitfalls: tuple[Mapping[str, Any], ...] = ()
    says: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The lines as they would be pasted."""
        return "\n".join(self.lines)

    def explain(self) -> LogReport:
        """Return the report on the lines, with the model that the row names."""
        return explain_log(self.text, model=self.model, config=self.config)


def load_engine_rows(path: Path | None = None) -> tuple[EngineRow, ...]:
    """Return every row of `data/engine_logs.json` (or of the file at `path`), checked.

    Raises `InvalidArgument` naming the row and the field at fault.

    >>> rows = load_engine_rows()
    >>> next(row for row in rows if row.id == "trt-1400").explain().findings[0].verdict
    'equal'
    """
    return _load(path or data_dir() / "engine_logs.json")


@lru_cache(maxsize=4)
def _load(path: Path) -> tuple[EngineRow, ...]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise KvlabError(f"cannot read {path.name}: {error}") from error
    rows = document.get("rows") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        raise InvalidArgument(f"{path.name}: rows", rows, "must be a list of one row or more")
    return tuple(_row(f"{path.name} row {i + 1}", row) for i, row in enumerate(rows))


def _row(where: str, row: object) -> EngineRow:
    if not isinstance(row, dict):
        raise InvalidArgument(where, row, "must be an object")
    where = f"{where} ({row.get('id', 'no id')})"
    for field in NEEDED:
        if not row.get(field):
            raise InvalidArgument(f"{where}, {field}", row.get(field), "must be there")
    if unknown := set(row) - set(EngineRow.__dataclass_fields__):
        raise InvalidArgument(f"{where}, field", sorted(unknown)[0], "is not a field of a row")
    if row["use"] not in USES:
        raise InvalidArgument(f"{where}, use", row["use"], f"must be one of {', '.join(USES)}")
    if "model" in row and "config" in row:
        raise InvalidArgument(f"{where}, config", "...", "must not stand beside a model")
    listed = ("lines", "checks", "naive", "pitfalls", "says")
    return EngineRow(**{key: tuple(v) if key in listed else v for key, v in row.items()})

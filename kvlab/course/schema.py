"""Read rows of JSON with a sentence for each fault: which row, which field, which rule."""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from kvlab.errors import InvalidArgument, KvlabError

TOPICS = (
    "basics",
    "qkv",
    "recompute",
    "memory",
    "prefill-decode",
    "gqa",
    "paging",
    "prefix",
    "quantisation",
    "eviction",
    "serving",
    "sizing",
)


class Row:
    """One JSON object being read; each field is taken once, and none may be left over.

    >>> Row("a.json row 1", {"level": 9}).integer("level", 1, 3)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: a.json row 1, level=9: must be an integer from 1 to 3
    """

    def __init__(self, where: str, fields: object) -> None:
        if not isinstance(fields, Mapping):
            raise InvalidArgument(where, fields, "must be an object")
        self.where, self._fields, self._taken = where, fields, set[str]()

    def has(self, field: str) -> bool:
        """Whether the field is there."""
        return field in self._fields

    def take(self, field: str, *default: Any) -> Any:
        """Return a field of any type; a missing one gives `default` or is a fault."""
        self._taken.add(field)
        if field in self._fields:
            return self._fields[field]
        if default:
            return default[0]
        raise self.fault(field, None, "is missing")

    def fault(self, field: str, value: object, rule: str) -> InvalidArgument:
        """Return the error that says which row and field break which rule."""
        return InvalidArgument(f"{self.where}, {field}", value, rule)

    def text(self, field: str, *default: str) -> str:
        """Return a text; an empty one is a fault unless it is the default."""
        value = self.take(field, *default)
        if not isinstance(value, str) or not (value.strip() or value in default):
            raise self.fault(field, value, "must be text and not empty")
        return value

    def choice(self, field: str, allowed: tuple[str, ...], *default: str) -> str:
        """Return a text that must be one of those allowed."""
        value = self.take(field, *default)
        if value not in allowed:
            raise self.fault(field, value, f"must be one of {', '.join(allowed)}")
        return value

    def integer(self, field: str, low: int, high: int, *default: int) -> int:
        """Return an integer within limits."""
        value = self.take(field, *default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.fault(field, value, f"must be an integer from {low} to {high}")
        return value

    def flag(self, field: str, *default: bool) -> bool:
        """Return true or false."""
        value = self.take(field, *default)
        if not isinstance(value, bool):
            raise self.fault(field, value, "must be true or false")
        return value

    def day(self, field: str) -> date:
        """Return a day written 2026-11-30."""
        value = self.text(field)
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise self.fault(field, value, "must be a day such as 2026-11-30") from None

    def texts(self, field: str, *, minimum: int = 0) -> tuple[str, ...]:
        """Return a list of texts, at least `minimum` of them."""
        values = self.take(field, *([] if minimum else [[]]))
        if not isinstance(values, list) or len(values) < minimum:
            raise self.fault(field, values, f"must be a list of {minimum} or more texts")
        for value in values:
            if not isinstance(value, str) or not value.strip():
                raise self.fault(field, value, "must be text and not empty")
        return tuple(values)

    def rows(self, field: str, *, minimum: int = 0) -> list["Row"]:
        """Return a list of objects, each as a row of its own."""
        values = self.take(field, *([] if minimum else [[]]))
        if not isinstance(values, list) or len(values) < minimum:
            raise self.fault(field, values, f"must be a list of {minimum} or more objects")
        return [Row(f"{self.where}, {field} {i}", value) for i, value in enumerate(values, 1)]

    def done(self) -> None:
        """Raise for the first field that nobody asked for: a misspelling is not passed over."""
        if left := sorted(set(self._fields) - self._taken):
            raise self.fault(left[0], self._fields[left[0]], "is not a field of this kind of row")


def read_rows(path: Path, field: str) -> list[Row]:
    """Return the rows of a data file: an object that holds a list under `field`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise KvlabError(f"cannot read {path.name}: {error}") from error
    top = Row(path.name, document)
    rows = top.rows(field, minimum=1)
    top.done()
    for index, row in enumerate(rows, 1):
        row.where = f"{path.name} row {index} ({row.take('id', 'no id')})"
    return rows

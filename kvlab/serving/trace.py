"""Recorded traffic: requests read from a CSV or JSONL file, every wrong line named.

A row has `prompt_tokens` and `output_tokens`, and may have `arrival_seconds` and `priority`. Rows
are taken in the order of arrival. Nothing in a file is evaluated; other columns are left unread.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, KvlabError
from kvlab.serving.request import Request

SUFFIXES = (".csv", ".jsonl")
ARRIVAL = "arrival_seconds"
Row = tuple[str, dict[str, Any]]
"""Words that say where a row stands, and its columns."""


def is_trace(text: str) -> bool:
    """Return whether `text` names a trace file by its ending.

    >>> is_trace("monday.jsonl"), is_trace("150")
    (True, False)
    """
    return Path(text).suffix.lower() in SUFFIXES


def read_trace(path: "str | Path") -> list[Request]:
    """Return the requests of a trace, in the order of their arrival (0 where none is said).

    Raises `InvalidArgument` naming the line and the column at fault.
    """
    return [
        Request(
            index,
            _count(row, "prompt_tokens"),
            _count(row, "output_tokens"),
            arrival_seconds=_seconds(row),
            priority=_whole(row, "priority") if row[1].get("priority") else 0,
        )
        for index, row in enumerate(read_rows(path))
    ]


def read_column(path: "str | Path", column: str) -> list[int]:
    """Return one column of lengths, in the order of arrival."""
    return [_count(row, column) for row in read_rows(path)]


def read_arrivals(path: "str | Path") -> list[float] | None:
    """Return when the requests of a trace arrive, in order; None where it does not say."""
    rows = read_rows(path)
    return [_seconds(row) for row in rows] if any(ARRIVAL in row[1] for row in rows) else None


def read_rows(path: "str | Path") -> list[Row]:
    """Return the rows of a trace in the order of arrival."""
    place = Path(path).expanduser()
    if not is_trace(place.name):
        raise InvalidArgument("trace", str(path), f"must end in {' or '.join(SUFFIXES)}")
    try:
        text = place.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise KvlabError(f"cannot read the trace {path}: {error}") from error
    read = _csv_rows if place.suffix.lower() == ".csv" else _json_rows
    rows = sorted(read(place.name, text.splitlines()), key=_seconds)
    if not rows:
        raise InvalidArgument("trace", str(path), "has no rows")
    return rows


def _csv_rows(name: str, lines: list[str]) -> Iterator[Row]:
    reader = csv.DictReader(lines)
    for row in reader:
        named = {key.strip(): cell for key, cell in row.items() if isinstance(key, str)}
        yield f"{name} line {reader.line_num}", named


def _json_rows(name: str, lines: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{name} line {number}"
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            raise InvalidArgument(where, line, "is not JSON") from None
        if not isinstance(row, dict):
            raise InvalidArgument(where, row, "must be an object")
        yield where, row


def _count(row: Row, column: str) -> int:
    return whole_number(f"{row[0]}, {column}", _whole(row, column))


def _whole(row: Row, column: str) -> int:
    where, value = f"{row[0]}, {column}", row[1].get(column)
    if value in (None, ""):
        raise InvalidArgument(where, value, "is missing")
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidArgument(where, value, "must be a whole number")
    return number


def _seconds(row: Row) -> float:
    value = row[1].get(ARRIVAL)
    try:
        seconds = float(0 if value in (None, "") else value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        rule = "must be a finite number of 0 or more"
        raise InvalidArgument(f"{row[0]}, {ARRIVAL}", value, rule)
    return seconds

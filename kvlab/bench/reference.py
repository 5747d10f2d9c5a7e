"""A run kept in a file: its lines with the machine and the date, merged row by row.

A later run replaces the lines of the rows that it measured; the others keep their own date.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.bench.lines import Line, read_line
from kvlab.bench.registry import ROWS
from kvlab.errors import InvalidArgument


@dataclass(frozen=True)
class KeptRun:
    """One run: the machine as `describe_machine` says it, the command, and its lines."""

    machine: Mapping[str, Any]
    command: str
    lines: tuple[Line, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        lines = [line.to_dict() for line in self.lines]
        return {"machine": dict(self.machine), "command": self.command, "lines": lines}


def reference_path() -> Path:
    """Return where the reference run lies."""
    return data_dir() / "bench" / "reference.json"


def load_runs(path: Path) -> list[KeptRun]:
    """Return the runs of a file, none where there is no file; raises `InvalidArgument`."""
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return [
            KeptRun(run["machine"], run["command"], tuple(map(read_line, run["lines"])))
            for run in found
        ]
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("file", str(path), f"holds no run of the bench ({error})") from None


def merged(runs: Sequence[KeptRun], new: KeptRun) -> list[KeptRun]:
    """Return the runs with the rows of `new` taken out of the older ones, and `new` at the end.

    >>> old = KeptRun({}, "a", (Line("start: x", unit="ms"), Line("open: y", unit="s")))
    >>> both = merged([old], KeptRun({}, "b", (Line("start: x", unit="ms", ours=1.0),)))
    >>> [[line.work for line in run.lines] for run in both]
    [['open: y'], ['start: x']]
    """
    measured = {line.row for line in new.lines}
    older = [
        KeptRun(run.machine, run.command, tuple(x for x in run.lines if x.row not in measured))
        for run in runs
    ]
    return [run for run in [*older, new] if run.lines]


def save_run(path: Path, run: KeptRun) -> None:
    """Merge a run into a file, written whole or not at all."""
    runs = [kept.to_dict() for kept in merged(load_runs(path), run)]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps({"runs": runs}, indent=1) + "\n", encoding="utf-8", newline="\n")
    part.replace(path)


def lines_in_order(runs: Sequence[KeptRun]) -> list[Line]:
    """Return the lines of all runs in the order of `ROWS`."""
    every = [line for run in runs for line in run.lines]
    order = {name: place for place, name in enumerate(ROWS)}
    return sorted(every, key=lambda line: order.get(line.row, len(order)))

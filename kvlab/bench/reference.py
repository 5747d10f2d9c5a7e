"""A run kept in a file: its lines with the machine and the date, merged row by row.

A later run replaces the lines of the rows that it measured; the others keep their own date.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copymode
from tempfile import TemporaryFile
from typing import Any
from uuid import uuid4

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
    return _runs_of(_document(path), path)


def check_place(path: Path) -> None:
    """Raise `InvalidArgument` where a run could not be kept in `path`; nothing is changed.

    A file that is there must hold runs, or nothing; a new one needs a folder that takes files.
    """
    load_runs(path)
    try:
        with TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        rule = f"no file can be written into its folder ({error.strerror or error})"
        raise InvalidArgument("file", str(path), rule) from None


def _document(path: Path) -> dict[str, Any]:
    """Return the whole content of a file of runs, with what else stands beside them."""
    try:
        place = path.resolve()
        is_loop = place.is_symlink()
        if not is_loop and not place.exists():
            return {"runs": []}
        if is_loop or not place.is_file():
            raise InvalidArgument("file", str(path), "must be a plain file, there or new")
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if text.strip() else {"runs": []}
    except InvalidArgument:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # RecursionError: lists in lists
        said = " ".join(str(error).split())[:100]
        raise InvalidArgument("file", str(path), f"holds no run of the bench ({said})") from None
    if not isinstance(found, dict) or not isinstance(found.get("runs"), list):
        raise InvalidArgument("file", str(path), "holds no run of the bench (no list of runs)")
    return found


def _runs_of(document: Mapping[str, Any], path: Path) -> list[KeptRun]:
    kept = []
    for run in document["runs"]:
        types = {name: type(value) for name, value in run.items()} if isinstance(run, dict) else {}
        if types != {"machine": dict, "command": str, "lines": list}:
            rule = "holds no run of the bench (machine, command and lines, and nothing else)"
            raise InvalidArgument("file", str(path), rule)
        try:
            lines = tuple(map(read_line, run["lines"]))
        except TypeError:  # a line that is no object
            rule = "holds no run of the bench (a line of it is none)"
            raise InvalidArgument("file", str(path), rule) from None
        kept.append(KeptRun(run["machine"], run["command"], lines))
    return kept


def merged(runs: Sequence[KeptRun], new: KeptRun) -> list[KeptRun]:
    """Return the runs with the rows of `new` taken out of the older ones, and `new` at the end.

    How a row's cost grows is kept apart from the row itself.

    >>> old = KeptRun({}, "a", (Line("start: x", unit="ms"), Line("open: y", unit="s")))
    >>> both = merged([old], KeptRun({}, "b", (Line("start: x", unit="ms", ours=1.0),)))
    >>> [[line.work for line in run.lines] for run in both]
    [['open: y'], ['start: x']]
    """
    measured = {_kind(line) for line in new.lines}
    older = []
    for run in runs:
        left = tuple(line for line in run.lines if _kind(line) not in measured)
        if left or not run.lines:  # one without lines is not ours to throw away
            older.append(KeptRun(run.machine, run.command, left))
    return [*older, new] if new.lines else older


def _kind(line: Line) -> tuple[str, bool]:
    return line.row, line.work.startswith(f"{line.row}: growth ")


def save_run(path: Path, run: KeptRun) -> None:
    """Merge a run into a file, written whole or not at all; what else it holds stays.

    A link stays a link. Raises `InvalidArgument` where it can't be written.
    """
    document = _document(path)
    runs = [kept.to_dict() for kept in merged(_runs_of(document, path), run)]
    text = json.dumps(document | {"runs": runs}, indent=1) + "\n"
    target = path.resolve()
    part = target.with_name(f".kvlab-{uuid4().hex}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if target.exists():
            copymode(target, part)
        part.replace(target)
    except OSError as error:
        rule = f"can't be written ({error.strerror or error})"
        raise InvalidArgument("file", str(path), rule) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def lines_in_order(runs: Sequence[KeptRun]) -> list[Line]:
    """Return the lines of all runs in the order of `ROWS`."""
    every = [line for run in runs for line in run.lines]
    order = {name: place for place, name in enumerate(ROWS)}
    return sorted(every, key=lambda line: order.get(line.row, len(order)))

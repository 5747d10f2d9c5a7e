"""The learner's progress: one small JSON file of their own, on this machine only.

Each save replaces the file in one move, so a kill leaves the old or the new file, never half of
one. A file that cannot be read is set aside, and the course goes on. Left out: two notebooks that
save at the very same moment; the later one wins.
"""

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kvlab._paths import user_dir

VERSION = 1
KEEP = 50
"""Answers kept for each question."""


def default_path() -> Path:
    """Return the learner's file; `KVLAB_PROGRESS` names another, as for building the chapters."""
    named = os.environ.get("KVLAB_PROGRESS")
    return Path(named).expanduser() if named else user_dir() / "progress.json"


@dataclass
class Progress:
    """What was answered: for each question or exercise a list of {when, verdict, right, seed}.

    >>> import tempfile
    >>> progress = Progress(Path(tempfile.mkdtemp()) / "progress.json")
    >>> progress.record("02-cached-forwards", "right", right=True, seed=3)
    >>> progress.score(["02-cached-forwards", "02-doubling"])
    (1, 1)
    """

    path: Path = field(default_factory=default_path)
    note: str = field(default="", init=False)

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """Return all answers kept, oldest first, read afresh from the file."""
        return self._read()["answers"]

    def record(self, item_id: str, verdict: str, *, right: bool, seed: int = 0) -> None:
        """Keep one answer; the file is replaced at once, so at most this answer can be lost."""
        document = self._read()
        when = datetime.now(UTC).isoformat(timespec="seconds")
        kept = document["answers"].setdefault(item_id, [])
        kept.append(
            {"when": when, "verdict": str(verdict), "right": bool(right), "seed": int(seed)}
        )
        del kept[:-KEEP]
        self._write(document)

    def score(self, item_ids: list[str]) -> tuple[int, int]:
        """Return (right, answered) over some questions; the last answer to each counts."""
        answers = self.answers()
        last = [answers[item][-1] for item in item_ids if answers.get(item)]
        return sum(bool(answer.get("right")) for answer in last), len(last)

    def misses(self) -> list[str]:
        """Return the ids whose last answer was not right, longest ago first."""
        answers = self.answers()
        missed = [(kept[-1]["when"], item) for item, kept in answers.items() if _missed(kept)]
        return [item for _, item in sorted(missed)]

    def delete(self) -> bool:
        """Delete the file and whatever a kill or a set-aside copy left; say if there was any."""
        folder = self.path.parent
        found = [self.path, *folder.glob(f"{self.path.name}.*"), *folder.glob(".progress-*")]
        there = [path for path in found if path.is_file()]
        for path in there:
            path.unlink(missing_ok=True)
        return bool(there)

    def _read(self) -> dict[str, Any]:
        """Return the file's content; one that cannot be read is set aside as a copy."""
        empty: dict[str, Any] = {"version": VERSION, "answers": {}}
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return empty
        except (OSError, UnicodeDecodeError):
            self._set_aside("corrupt")
            return empty
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if not _sound(document):
            newer = isinstance(document, dict) and document.get("version") not in (None, VERSION)
            self._set_aside("other-version" if newer else "corrupt")
            return empty
        return document

    def _set_aside(self, why: str) -> None:
        """Rename a file that cannot be used; earlier copies stay. Only files are ever renamed."""
        if not self.path.is_file():
            self.note = f"Your progress is not kept: {self.path} is no ordinary file."
            return
        number = 1
        while (copy := self.path.with_name(f"{self.path.name}.{number}.{why}")).exists():
            number += 1
        with contextlib.suppress(OSError):
            self.path.replace(copy)
            self.note = f"Your progress file could not be used and was kept as {copy.name}."

    def _write(self, document: dict[str, Any]) -> None:
        """Replace the file in one move; where nothing can be written, say so in `note`."""
        if self.path.exists() and not self.path.is_file():
            self.note = f"Your progress is not kept: {self.path} is no ordinary file."
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self.path, json.dumps(document, indent=1))
        except OSError as error:
            self.note = f"Your progress was not saved: {error.strerror or error}."


def _replace(path: Path, text: str) -> None:
    """Write a file beside the old one and move it into place."""
    handle, name = tempfile.mkstemp(prefix=".progress-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _missed(kept: list[dict[str, Any]]) -> bool:
    """Whether the last answer was wrong; the unanswered and the unreadable do not count."""
    return bool(kept) and not kept[-1].get("right")


def _sound(document: object) -> bool:
    """Whether a document is of this version and has the form that is written here."""
    if not isinstance(document, dict) or document.get("version") != VERSION:
        return False
    answers = document.get("answers")
    return isinstance(answers, dict) and all(
        isinstance(kept, list)
        and all(isinstance(item, dict) and isinstance(item.get("when"), str) for item in kept)
        for kept in answers.values()
    )

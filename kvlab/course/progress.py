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

from kvlab._paths import own_dir, user_dir
from kvlab.errors import KvlabError

VERSION = 1
KEEP = 50
"""Answers kept for each question."""


def default_path() -> Path:
    """Return the learner's file; `KVLAB_PROGRESS` names another, as for building the chapters.

    It lies beside the weights, unless those are a shared folder in which one may only read.
    """
    named = os.environ.get("KVLAB_PROGRESS")
    if named:
        return Path(named).expanduser()
    folder = user_dir()
    shared = folder.is_dir() and not os.access(folder, os.W_OK)
    return (own_dir() if shared else folder) / "progress.json"


@dataclass
class Progress:
    """What was answered: for each question or exercise a list of {when, verdict, right, seed}.

    >>> import tempfile
    >>> progress = Progress(Path(tempfile.mkdtemp()) / "progress.json")
    >>> progress.record("02-cached-forwards", "right", right=True, seed=3)
    True
    >>> progress.score(["02-cached-forwards", "02-doubling"])
    (1, 1)
    """

    path: Path = field(default_factory=default_path)
    _unsaved: str = field(default="", init=False, repr=False)
    _aside: str = field(default="", init=False, repr=False)

    @property
    def note(self) -> str:
        """What the learner should be told: that a save failed, else that a file was set aside."""
        return self._unsaved or self._aside

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """Return all answers kept, oldest first, read afresh from the file."""
        return self._read()["answers"]

    def record(self, item_id: str, verdict: str, *, right: bool, seed: int = 0) -> bool:
        """Keep one answer and return whether it is in the file; `note` says why if it is not.

        The file is replaced at once, so at most this answer can be lost.
        """
        document = self._read()
        when = datetime.now(UTC).isoformat(timespec="seconds")
        kept = document["answers"].setdefault(item_id, [])
        kept.append(
            {"when": when, "verdict": str(verdict), "right": bool(right), "seed": int(seed)}
        )
        del kept[:-KEEP]
        return self._write(document)

    def score(self, item_ids: list[str]) -> tuple[int, int]:
        """Return (right, answered) over some questions; the last answer to each counts."""
        answers = self.answers()
        last = [answers[item][-1] for item in item_ids if answers.get(item)]
        return sum(bool(answer.get("right")) for answer in last), len(last)

    def delete(self) -> bool:
        """Delete the file and whatever a kill or a set-aside copy left; say if there was any.

        Raises `KvlabError` naming what could not be deleted.
        """
        folder = self.path.parent
        found = [self.path, *folder.glob(f"{self.path.name}.*"), *folder.glob(".progress-*")]
        there = [path for path in found if path.is_file()]
        try:
            for path in there:
                path.unlink(missing_ok=True)
        except OSError as error:
            why = error.strerror or error
            raise KvlabError(f"not deleted: {path.name} in {folder}: {why}") from error
        self._unsaved = self._aside = ""
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
        with contextlib.suppress(OSError):  # where nothing may be touched, saving says so
            if not self.path.is_file():
                self._unsaved = f"Your progress is not kept: {self.path} is no ordinary file."
                return
            number = 1
            while (copy := self.path.with_name(f"{self.path.name}.{number}.{why}")).exists():
                number += 1
            self.path.replace(copy)
            self._aside = f"Your progress file could not be used and was kept as {copy.name}."

    def _write(self, document: dict[str, Any]) -> bool:
        """Replace the file in one move and return True; else say in `note` why not."""
        try:
            if self.path.exists() and not self.path.is_file():
                self._unsaved = f"Your progress is not kept: {self.path} is no ordinary file."
                return False
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self.path, json.dumps(document, indent=1))
        except OSError as error:
            self._unsaved = f"Your progress was not saved: {error.strerror or error}."
            return False
        self._unsaved = ""
        return True


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

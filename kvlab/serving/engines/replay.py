"""Our recorded runs of real engines: read without any engine, and said to be recorded.

`run(name)` is what a chapter calls: live where the engine is installed, else from the recording.
"""

import json
import os
from pathlib import Path

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.play import can_play, play
from kvlab.serving.engines.recording import from_dict, recordings_dir
from kvlab.serving.engines.runs import EngineRun


def recorded() -> list[str]:
    """Return the names of all recorded runs.

    >>> "pool-2048" in recorded()
    True
    """
    return sorted(path.stem for path in recordings_dir().glob("*.json"))


def replay(name: str, folder: Path | None = None) -> EngineRun:
    """Return a recorded run. Raises `InvalidArgument` for an unknown name or a damaged file.

    >>> run = replay("pool-2048")
    >>> run.replayed, run.readings.tokens == run.prediction.tokens
    (True, True)
    """
    path = (folder or recordings_dir()) / f"{name}.json"
    if not path.is_file():
        rule = f"there is no such recording; there are {', '.join(recorded())}"
        raise InvalidArgument("name", name, rule)
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(path.name, str(error), "is not JSON") from None
    return from_dict(row, path.name)


def run(name: str, *, live: bool | None = None, progress: bool = True) -> EngineRun:
    """Return a run by its name: live, or replayed and said to be so.

    `live` None: live where the engine is installed, but for `KVLAB_ENGINES=replay` in the
    environment. True: live or `EngineUnavailable`.

    >>> run("capacity-fp32-32", live=False).readings.num_blocks
    128
    """
    if live is None:
        live = os.environ.get("KVLAB_ENGINES") != "replay" and can_play(name)
    return play(name, progress=progress) if live else replay(name)

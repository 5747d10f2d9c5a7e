"""Records our runs of real engines, for those who have none: data/engine_runs/NAME.json.

    python -m kvlab.serving.engines.record [NAME ...]

Without names it lists them. A run with times is worth recording on an idle machine alone.
"""

import json
import sys
import time
from pathlib import Path

from kvlab.errors import KvlabError
from kvlab.serving.engines.faults import EngineFailed
from kvlab.serving.engines.play import play
from kvlab.serving.engines.recording import recordings_dir, to_dict
from kvlab.serving.engines.runs import EngineRun
from kvlab.serving.engines.scenarios import SCENARIOS


def record(name: str, folder: Path | None = None) -> EngineRun:
    """Play a scenario live and write it down; return the run. Raises where an answer broke off."""
    run = play(name)
    for load in run.loads.values():
        broken = [answer.error for answer in load.answers.values() if answer.error]
        if broken:
            raise EngineFailed(f"load {load.name!r}: {len(broken)} answers broke off: {broken[0]}")
    target = folder or recordings_dir()
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{name}.json").write_text(as_text(run), encoding="utf-8")
    return run


def as_text(run: EngineRun) -> str:
    """Return a run as JSON: a field on each line, its long lists on lines of their own."""
    row = to_dict(run)
    parts = []
    for key, value in row.items():
        if key in ("log", "loads") and value:
            inner = ",\n  ".join(
                _load(item) if key == "loads" else json.dumps(item) for item in value
            )
            parts.append(f' "{key}": [\n  {inner}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _load(load: dict[str, object]) -> str:
    lines = [f'   "{key}": {json.dumps(value)}' for key, value in load.items()]
    return "{\n" + ",\n".join(lines) + "\n  }"


def main(names: list[str]) -> int:
    """Record the named runs; return how many failed."""
    if not names:
        print("\n".join(f"{name:<24}{SCENARIOS[name].title}" for name in SCENARIOS))
    failed = 0
    for name in names:
        started = time.monotonic()
        try:
            run = record(name)
        except KvlabError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed += 1
            continue
        agreed = [pair.agrees for pair in run.agreements()]
        served = sum(len(load.answers) for load in run.loads.values())
        print(
            f"{name}: {time.monotonic() - started:.0f} s, others took {run.others_share:.0%},"
            f" {sum(agreed)} of {len(agreed)} sizes as predicted, {served} answers"
            + (f", refused: {run.failure}" if run.failure else ""),
            flush=True,
        )
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A run of an engine as a file, and back: checked field by field when it is read.

Prompts are not kept: the scenario makes them again, and a hash says that they are the same.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.errors import InvalidArgument, KvlabError
from kvlab.serving.engines.machine import Machine
from kvlab.serving.engines.readings import Readings
from kvlab.serving.engines.runs import PLANS, EngineRun
from kvlab.serving.engines.scenarios import SCENARIOS
from kvlab.serving.engines.served import Load, MemoryLook, ServedAnswer
from kvlab.serving.request import Request
from kvlab.serving.timeline import Point

FORMAT = 1
RUN_FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int, "name": str, "title": str, "engine": str, "plan": dict, "machine": dict,
    "date": str, "versions": dict, "command": list, "log": list, "loads": list,
    "startup_seconds": (int, float), "others_share": (int, float), "note": str,
}  # fmt: skip
LOAD_FIELDS: dict[str, type | tuple[type, ...]] = {
    "name": str, "prompts": str, "requests": list, "answers": list, "points": list,
    "before": dict, "after": dict, "seconds": (int, float), "memory": list,
}  # fmt: skip


def recordings_dir() -> Path:
    """Return the folder of our recorded runs."""
    return data_dir() / "engine_runs"


def prompts_hash(requests: "tuple[Request, ...]") -> str:
    """Return a hash of all prompts of a load, in their order."""
    text = json.dumps([list(request.prompt_ids or ()) for request in requests])
    return hashlib.sha256(text.encode()).hexdigest()


def to_dict(run: EngineRun) -> dict[str, Any]:
    """Return a run for a file; times in whole milliseconds."""
    return {
        "format": FORMAT,
        "name": run.name,
        "title": run.title,
        "engine": run.plan.engine,
        "plan": run.plan.to_dict(),
        "machine": run.machine.to_dict(),
        "date": run.date,
        "versions": run.versions,
        "command": list(run.command),
        "log": list(run.log),
        "readings": run.readings.to_dict() if run.readings else None,
        "loads": [_load_to_dict(load) for load in run.loads.values()],
        "startup_seconds": round(run.startup_seconds, 2),
        "others_share": round(run.others_share, 3),
        "failure": run.failure,
        "note": run.note,
    }


def _load_to_dict(load: Load) -> dict[str, Any]:
    rows = [
        (r.request_id, r.prompt_tokens, r.max_new_tokens, r.arrival_seconds) for r in load.requests
    ]
    return {
        "name": load.name,
        "prompts": prompts_hash(load.requests),
        "requests": [list(row) for row in rows],
        "answers": [answer.to_dict() for answer in load.answers.values()],
        "points": [[round(v, 5) for v in point] for point in load.points],
        "before": load.before.to_dict(),
        "after": load.after.to_dict(),
        "seconds": round(load.seconds, 3),
        "memory": [[round(m.seconds, 2), m.rss_bytes, round(m.block_use, 5)] for m in load.memory],
    }


def from_dict(row: Mapping[str, Any], where: str) -> EngineRun:
    """Return the run that a file holds; `where` names the file in errors."""
    _check(row, RUN_FIELDS, where)
    if row["format"] != FORMAT:
        raise InvalidArgument(f"{where}: format", row["format"], f"must be {FORMAT}")
    if row["engine"] not in PLANS:
        raise InvalidArgument(f"{where}: engine", row["engine"], f"must be one of {list(PLANS)}")
    try:
        plan = PLANS[row["engine"]](**row["plan"])
        machine = Machine(**{**row["machine"], "fast_bits": tuple(row["machine"]["fast_bits"])})
        loads = [_load_from_dict(row["name"], load, where) for load in row["loads"]]
        readings = Readings(**row["readings"]) if row.get("readings") else None
    except KvlabError:
        raise
    except (TypeError, KeyError, IndexError) as error:
        raise InvalidArgument(where, str(error), "a part of the recording is missing") from None
    return EngineRun(
        row["name"], row["title"], plan, machine, row["date"], row["versions"],
        tuple(row["command"]), tuple(row["log"]), readings, {x.name: x for x in loads},
        row["startup_seconds"], row["others_share"], row.get("failure"), row["note"], replayed=True,
    )  # fmt: skip


def _load_from_dict(scenario: str, row: Mapping[str, Any], where: str) -> Load:
    _check(row, LOAD_FIELDS, f"{where}: load {row.get('name')!r}")
    answers = [ServedAnswer.from_dict(answer) for answer in row["answers"]]
    return Load(
        row["name"],
        _requests(scenario, row),
        {answer.request_id: answer for answer in answers},
        tuple(_point(values) for values in row["points"]),
        Readings(**row["before"]),
        Readings(**row["after"]),
        row["seconds"],
        tuple(MemoryLook(*values) for values in row["memory"]),
    )


def _requests(scenario: str, row: Mapping[str, Any]) -> tuple[Request, ...]:
    """The requests with their prompts, where the scenario still makes the same; else lengths."""
    known = SCENARIOS[scenario].loads.get(row["name"]) if scenario in SCENARIOS else None
    try:
        made = tuple(known.make()) if known is not None else ()
    except (KvlabError, OSError):  # a tokenizer that is not here
        made = ()
    if made and prompts_hash(made) == row["prompts"]:
        return made
    return tuple(Request(a, b, c, arrival_seconds=d) for a, b, c, d in row["requests"])


def _point(values: "list[float]") -> Point:
    seconds, running, waiting, use, *counters = values
    return Point(seconds, int(running), int(waiting), use, *(int(v) for v in counters))


def _check(row: Any, fields: Mapping[str, Any], where: str) -> None:
    if not isinstance(row, Mapping):
        raise InvalidArgument(where, type(row).__name__, "must hold an object")
    for name, kind in fields.items():
        if name not in row:
            raise InvalidArgument(f"{where}: {name}", None, "is missing")
        if not isinstance(row[name], kind) or isinstance(row[name], bool):
            raise InvalidArgument(f"{where}: {name}", row[name], "is of another kind")

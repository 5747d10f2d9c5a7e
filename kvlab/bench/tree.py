"""The source tree: rows that drive notebooks and a browser need it; a package lacks it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvlab.errors import Unsupported

ROOT = Path(__file__).resolve().parents[2]


def require_tree() -> Path:
    """Return the root of the source tree; raises `Unsupported` where there is none."""
    if not (ROOT / "tools" / "measure_lab.py").is_file():
        raise Unsupported("this row needs the course's source tree, not the package alone")
    return ROOT


def ask_tool(name: str, *arguments: str, timeout: float = 1200) -> Any:
    """Run a tool of the source tree and return the JSON of its last line.

    Raises `Unsupported` with the tool's own last words where it fails.
    """
    root = require_tree()
    command: Sequence[str] = (sys.executable, str(root / "tools" / name), *arguments)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, _paths(root)))}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=timeout
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise Unsupported(f"{name}: {said}")
    return json.loads(lines[-1])


def _paths(root: Path) -> list[Path]:
    return [root, root / "tools", root / "tests" / "browser"]

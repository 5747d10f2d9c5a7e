"""The command that opens JupyterLab at chapter 00, fitted to the machine it runs on.

Token on and loopback only, whatever the machine; nothing is asked of the outside.
"""

from __future__ import annotations

import os
import shlex
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

START = "chapters/00_start_here.ipynb"


def lab_command(python: Path, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the command line; `KVLAB_LAB_ARGS` adds options of the learner's own.

    >>> lab_command(Path("python"), {"KVLAB_LAB_ARGS": "--port=9999"})[-1]
    '--port=9999'
    """
    command = [
        str(python), "-m", "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.root_dir=.",
        f"--LabApp.default_url=/lab/tree/{START}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--log-level=WARN",
    ]  # fmt: skip
    if is_root():
        command.append("--allow-root")
    if not has_browser(environ):
        command.append("--no-browser")
    return command + shlex.split(environ.get("KVLAB_LAB_ARGS", ""))


def is_root() -> bool:
    """Return whether this is the root user, as in many containers."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def has_browser(environ: Mapping[str, str], platform: str | None = None) -> bool:
    """Return whether a window can be opened here; a terminal's text browser does not count.

    >>> has_browser({}, "linux")
    False
    """
    on_linux = (platform or sys.platform).startswith("linux")
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if on_linux and not any(environ.get(name) for name in screens):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True

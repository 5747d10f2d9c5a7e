"""Where kvlab finds its own data and where it keeps what it fetched."""

import os
import sys
from pathlib import Path


def data_dir() -> Path:
    """Return the folder of bundled facts and tiny models (in the wheel, or the repository's)."""
    packaged = Path(__file__).parent / "_data"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "data"


def user_dir() -> Path:
    """Return the learner's folder for weights and progress; `KVLAB_HOME` overrides it."""
    override = os.environ.get("KVLAB_HOME")
    return Path(override).expanduser() if override else own_dir()


def own_dir() -> Path:
    """Return the folder that belongs to this learner alone, whatever `KVLAB_HOME` says."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "kvlab"

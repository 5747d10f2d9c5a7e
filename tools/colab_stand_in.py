"""A stand-in for Colab's kernel: `google.colab` is there, the course is not, pip is answered.

`make_stand_in` writes a kernel that a notebook client can start. Its `%pip` installs the wheel of
this repository where a chapter asks for the course on GitHub, with pip itself and no network, and
refuses any other source. What it can't stand in for: Colab's page, its PyTorch with CUDA, its GPU.
"""

import json
from pathlib import Path

from chapter_pairs import ROOT

NAME = "colab"
STARTUP = '''\
"""Runs first in the kernel, as Colab's own start-up does."""
import importlib.util
import subprocess
import sys
from pathlib import Path

SITE, WHEEL, ROOT, EXPECTED = {site!r}, {wheel!r}, {root!r}, {expected!r}
sys.path[:] = [p for p in sys.path if p != ROOT] + [{stand_in!r}]
import google.colab

if any(Path(place, "kvlab", "__init__.py").exists() for place in sys.path):
    raise RuntimeError("the course can be imported before it is installed")


def pip(line):
    words = line.split()
    if words[:2] == ["install", "-q"] and words[2:] == ["gguf", "pint"]:
        missing = [name for name in words[2:] if not importlib.util.find_spec(name)]
        if missing:
            raise RuntimeError(f"not in this environment: {{missing}}")
    elif line == f"install -q --no-deps {{EXPECTED}}":
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
        command += ["--no-compile", "--target", SITE, WHEEL]
        subprocess.run(command, check=True, capture_output=True)
        sys.path.insert(1, SITE)
    else:
        raise RuntimeError(f"pip was asked for something else: {{line}}")


get_ipython().register_magic_function(pip, "line")
'''


def make_stand_in(folder: Path, python: Path, wheel: Path, expected: str) -> dict[str, str]:
    """Write the kernel into `folder`/kernels; return the variables under which it runs.

    `python` runs it, `wheel` answers the pip line for `expected`.
    """
    package = folder / "stand-in" / "google" / "colab"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "output.py").touch()
    facts = {"site": str(folder / "site"), "wheel": str(wheel), "expected": expected}
    text = STARTUP.format(**facts, root=str(ROOT), stand_in=str(folder / "stand-in"))
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-colab.py").write_text(text, encoding="utf-8")
    kernel = folder / "kernels" / NAME
    kernel.mkdir(parents=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": [*command, "--log-level=40"], "display_name": NAME, "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return {
        "IPYTHONDIR": str(folder / "ipython"),
        "KVLAB_PROGRESS": str(folder / "progress.json"),
    }

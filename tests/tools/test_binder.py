"""What a hub needs: binder/ holds it, and the steps of an image builder work in a bare environment.

The steps take minutes and are done with KVLAB_TEST_BINDER=1 alone. They run on this Python; the
image's own, of runtime.txt, is not here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".cache", "*.egg-info", "__pycache__", "editions", "slides", ".hypothesis"
)
whole = pytest.mark.skipif(not os.environ.get("KVLAB_TEST_BINDER"), reason="KVLAB_TEST_BINDER=1")


def requirements() -> list[Requirement]:
    """Return what binder/requirements.txt leads to, as pip reads it."""
    found = []
    for line in (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            other = (BINDER / line.removeprefix("-r ").strip()).read_text(encoding="utf-8")
            found += [Requirement(x) for x in other.splitlines() if x and not x.startswith("#")]
    return found


def test_the_image_s_python_is_one_that_the_course_takes() -> None:
    named = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip()
    version = re.fullmatch(r"python-(3\.\d+)", named)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version and SpecifierSet(project["requires-python"]).contains(version[1])
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert version[1] in container["image"]


def test_the_image_gets_the_same_pins_as_everybody() -> None:
    pins = {one.name: str(one.specifier) for one in requirements()}
    assert {"torch", "transformers", "jupyterlab", "ipywidgets"} <= set(pins)
    assert all(pin.startswith("==") for pin in pins.values())


def test_the_last_step_is_a_script_that_a_shell_can_read() -> None:
    script = BINDER / "postBuild"
    if os.name != "nt":
        assert os.access(script, os.X_OK)
        assert subprocess.run(["bash", "-n", script]).returncode == 0
    lines = script.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash" and "set -euo pipefail" in lines


def test_the_example_for_a_hub_gives_no_student_less_than_was_measured() -> None:
    from class_report import kept
    from traitlets.config.loader import PyFileConfigLoader

    spawner = PyFileConfigLoader(str(BINDER / "jupyterhub_config.py")).load_config().Spawner
    size = {"M": 1e6, "G": 1e9}
    guarantee, limit = (
        float(text[:-1]) * size[text[-1]] for text in (spawner.mem_guarantee, spawner.mem_limit)
    )
    runs = kept()
    assert guarantee >= max(private for run in runs for private in run.private_each)
    assert limit >= max(pss for run in runs for pss in run.pss_each) * 1.5
    assert spawner.environment["OMP_NUM_THREADS"] == str(runs[0].threads)
    assert (ROOT / spawner.default_url.split("/tree/kvlab/")[1]).exists()


@whole
def test_an_image_builder_s_steps_give_a_course_that_runs(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    shutil.copytree(ROOT, repository, ignore=LEFT_OUT)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    scripts = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("KVLAB", "PYTHON"))}
    environ |= {"PATH": f"{scripts}{os.pathsep}{environ['PATH']}", "HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()

    def step(*command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=repository, env=environ, text=True, capture_output=True, timeout=1500
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    pip = ("install", "--quiet", "--no-cache-dir", "-r", "binder/requirements.txt")
    step(scripts / "python", "-m", "pip", *pip)
    step("./binder/postBuild")
    assert step(scripts / "python", "-c", "import kvlab; print(kvlab.__file__)").startswith(
        str(repository)
    )
    run = ("-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", tmp_path)
    step(scripts / "python", *run, "chapters/00_start_here.ipynb")
    ran = (tmp_path / "00_start_here.ipynb").read_text(encoding="utf-8")
    assert "smollm2: 134,515,008 parameters" in ran and '"output_type": "error"' not in ran
    assert (tmp_path / "home" / ".cache" / "kvlab" / "smollm2" / "model.safetensors").exists()

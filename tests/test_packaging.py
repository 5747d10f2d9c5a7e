"""The wheel carries the facts with it, works alone, and replaces nothing that Colab has."""

import json
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RANGES = {canonicalize_name(r.name): r for r in map(Requirement, PROJECT["dependencies"])}

COLAB = {
    "torch": "2.11.0", "transformers": "5.15.0", "numpy": "2.1.3", "safetensors": "0.8.0",
    "tokenizers": "0.22.2", "ipywidgets": "7.7.1", "plotly": "5.24.1", "tqdm": "4.67.3",
    "rich": "13.9.4", "typer": "0.27.1",
}  # fmt: skip
"""Colab's own list of what it holds, of 2026-08-19 (googlecolab/backend-info, pip-freeze)."""
COLAB_PYTHON = "3.13"
NOT_IN_COLAB = {"pint", "gguf"}
NEEDED_BY_ITS_TORCH_AND_TRANSFORMERS = {"filelock", "huggingface-hub", "packaging"}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it printed; its errors are the test's."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the wheel, built from the source archive as a publisher would, with no network."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the interpreter of a new environment that holds the wheel alone.

    The libraries it depends on are lent by this environment through a path file, put there after
    the installation; this environment's own editable kvlab does not come along with them.
    """
    folder = tmp_path_factory.mktemp("alone") / "a folder with spaces"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    bare = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(sys.executable, "-m", "pip", "--python", bare, "install", "--no-index", "--no-deps", wheel)
    site = run(bare, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    libraries = sysconfig.get_path("purelib") + "\n"
    Path(site, "libraries.pth").write_text(libraries, encoding="utf-8")
    return bare


def test_the_wheel_holds_every_fact_and_both_licences(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    facts = [p.relative_to(ROOT / "data") for p in (ROOT / "data").rglob("*") if p.is_file()]
    assert facts
    assert not [f for f in facts if f"kvlab/_data/{f.as_posix()}" not in names]
    licences = {name.rsplit("/", 1)[1] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "LICENSE-TEXT"}
    assert not [name for name in names if name.startswith(("tests/", "tools/", "data/"))]


def test_the_wheel_works_alone(python: Path, tmp_path: Path) -> None:
    ask = "import kvlab, kvlab._paths as p; print(kvlab.__file__); print(p.data_dir())"
    where, data = run(python, "-c", ask, cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(python.parents[1])
    assert Path(data) == Path(where).parent / "_data"


def test_the_installed_doctor_reports_in_json(python: Path, tmp_path: Path) -> None:
    command = python.with_name("kvlab.exe" if sys.platform == "win32" else "kvlab")
    assert json.loads(run(command, "doctor", "--json", cwd=tmp_path))


def test_the_installed_catalogue_is_the_repositorys(python: Path, tmp_path: Path) -> None:
    ask = (
        "from kvlab.arithmetic.catalogue import load_models as f; print(sorted(m.id for m in f()))"
    )
    here = run(sys.executable, "-c", ask)
    assert run(python, "-c", ask, cwd=tmp_path) == here


@pytest.mark.parametrize("name", sorted(COLAB))
def test_colab_keeps_its_own_version_of(name: str) -> None:
    assert RANGES[name].specifier.contains(COLAB[name])


def test_colab_lacks_only_small_packages() -> None:
    assert set(RANGES) - set(COLAB) == NOT_IN_COLAB | NEEDED_BY_ITS_TORCH_AND_TRANSFORMERS
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(COLAB_PYTHON)


def test_the_pins_lie_inside_the_ranges() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(str(pin.specifier).startswith("==") for pin in pins)
    known = {canonicalize_name(pin.name): str(pin.specifier)[2:] for pin in pins}
    assert not [name for name, r in RANGES.items() if not r.specifier.contains(known[name])]

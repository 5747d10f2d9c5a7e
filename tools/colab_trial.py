"""Run chapters as in Colab: one notebook in an empty folder, a wheel, Colab's older packages.

    python tools/colab_trial.py            # every chapter, two at a time
    python tools/colab_trial.py 03 11      # these alone

It tries the kernel's side: that the first cell finds Colab and installs the course, that every
cell runs, that outputs which do not depend on the machine are those of the stored chapter, and
that each widget speaks ipywidgets 7's language and has a picture beside it. Colab's page, its
PyTorch build and its GPU are not here; see `colab_stand_in`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from built_chapters import choose_built
from chapter_pairs import ROOT, notebook_of
from colab_judge import VERSIONS, findings, versions_of
from colab_stand_in import NAME, make_stand_in
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from lowest_environment import ensure_lowest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell
from run_notebook import COLOURS

sys.path.insert(0, str(ROOT))

from kvlab._paths import user_dir
from kvlab.course.address import install_source

SECONDS_PER_CELL = 300
LONGEST = (
    "09",
    "08",
    "00",
    "02",
    "10",
    "05",
    "04",
)  # first, so that no core waits for one at the end


@dataclass
class Trial:
    """One chapter's run: how long it took, what was found, which versions its kernel had."""

    chapter: str
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def main(arguments: list[str]) -> int:
    """Run the chapters; return 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="chapters, as 00 or 00_start_here")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--python", type=Path, help="an interpreter with Colab's versions")
    parser.add_argument("--wheel", type=Path, help="default: built now")
    options = parser.parse_args(arguments)
    chosen = choose_built(options.names)
    order = {number: place for place, number in enumerate(LONGEST)}
    chosen.sort(key=lambda source: order.get(source.stem[:2], len(order)))
    python = options.python or ensure_lowest(ROOT / ".venv-lowest", ROOT / ".venv")
    with tempfile.TemporaryDirectory(prefix="kvlab-colab-") as folder:
        wheel = options.wheel or build_wheel(Path(folder))
        print(f"colab: {len(chosen)} chapters, {options.jobs} at a time", flush=True)
        with ThreadPoolExecutor(options.jobs) as pool:
            trials = list(pool.map(lambda s: tried(s, python, wheel.resolve(), folder), chosen))
    if trials:
        print("in the kernel:", ", ".join(f"{k} {v}" for k, v in trials[0].versions.items()))
    failed = [trial.chapter for trial in trials if trial.found]
    print(f"colab: {len(trials) - len(failed)} passed, {len(failed)} failed")
    return bool(failed)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this repository into `folder`, without a network."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def tried(source: Path, python: Path, wheel: Path, folder: str) -> Trial:
    """Run one chapter's notebook and print one line, or what was found."""
    trial, started = Trial(source.stem), time.perf_counter()
    place = Path(tempfile.mkdtemp(dir=folder))
    stored = nbformat.read(notebook_of(source), as_version=4)
    notebook = nbformat.read(notebook_of(source), as_version=4)
    notebook.cells.append(new_code_cell(VERSIONS))
    try:
        environ = make_stand_in(place / "colab", python, wheel, install_source())
        run(notebook, place / "colab" / "kernels", environ)
        trial.versions = versions_of(notebook.cells.pop())
        trial.found = findings(notebook, stored, trial.versions, place / "colab" / "site")
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        trial.found = [COLOURS.sub("", str(error)).strip()]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    trial.seconds = time.perf_counter() - started
    outcome, most = "FAILED" if trial.found else "passed", trial.versions.pop("memory", "unknown")
    print(f"{trial.chapter}: {outcome}, {trial.seconds:.0f} s, memory at most {most}", flush=True)
    for line in trial.found:
        print(f"    {line}", flush=True)
    return trial


REPLAY = {"KVLAB_ENGINES": "replay"}  # Colab has no engine beside the course


def run(notebook: nbformat.NotebookNode, kernels: Path, environ: dict[str, str]) -> None:
    """Run the notebook in an empty folder, in the kernel found in `kernels`; keep widgets' state.

    Raises nbclient's errors.
    """
    specs = KernelSpecManager(kernel_dirs=[str(kernels)], ensure_native_kernel=False)
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name=NAME, kernel_spec_manager=specs),
        timeout=SECONDS_PER_CELL,
        store_widget_state=True,
        coalesce_streams=True,
    )
    cores = str(max(1, (os.cpu_count() or 1) // 2))
    quiet = {"TQDM_DISABLE": "1", "KVLAB_STRICT": "1", "KVLAB_HOME": str(user_dir())}
    quiet |= {"OMP_NUM_THREADS": cores, "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
    quiet |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # old ipykernel says so on new Pythons
    with tempfile.TemporaryDirectory() as content:
        client.execute(env=os.environ | quiet | REPLAY | environ, cwd=content)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

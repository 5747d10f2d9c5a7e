"""Run one notebook in a fresh kernel and reduce it to what every machine would store.

It leaves out judging the result: `notebook_guards` does that.
"""

import os
import re
import tempfile
from pathlib import Path

import nbformat
from chapter_pairs import tags_of
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SECONDS_PER_CELL = 300
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class CellFailed(Exception):
    """A cell did what no stored chapter may hold; the message names the cell and the fault."""


def run_notebook(notebook: NotebookNode, folder: Path, stored: NotebookNode | None = None) -> None:
    """Fill `notebook` with outputs, working in `folder`; `stored` lends its timing outputs.

    Raises `CellFailed` at an error outside a `raises-exception` cell and at anything on stderr.
    """
    client = client_for(notebook, folder)
    try:
        client.execute(env=quiet_environment())
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise CellFailed(COLOURS.sub("", str(error)).strip()) from None
    for number, cell in enumerate(code_cells(notebook), start=1):
        cell.execution_count = number
        cell.metadata.pop("execution", None)
        refuse_stderr(cell)
        cell.outputs = [tidy(output, number) for output in cell.outputs]
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = NotebookNode(name="python")
    if stored is not None:
        keep_timings(notebook, stored)


def client_for(notebook: NotebookNode, folder: Path) -> NotebookClient:
    """Return what runs `notebook` in `folder` and stores neither times nor widget state."""
    return NotebookClient(
        notebook,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40"],
        timeout=SECONDS_PER_CELL,
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )


def quiet_environment() -> dict[str, str]:
    """Return a kernel's environment: no progress bars, and an error in a widget fails its cell.

    A page is built with nobody's answers: their file is a new place that holds none.
    """
    nobody = str(Path(tempfile.mkdtemp(prefix="kvlab-")) / "progress.json")
    quiet = {"TQDM_DISABLE": "1", "KVLAB_STRICT": "1", "KVLAB_PROGRESS": nobody}
    quiet["KVLAB_ENGINES"] = "replay"  # stored pages show our recordings
    return os.environ | quiet


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the cells that hold code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def refuse_stderr(cell: NotebookNode) -> None:
    """Raise `CellFailed` when a cell wrote warnings where a learner would read them."""
    if "raises-exception" in tags_of(cell):
        return
    for output in cell.outputs:
        if output.get("name") == "stderr":
            raise CellFailed(f"stderr in the cell\n{cell.source}\n--\n{output.text}")


def tidy(output: NotebookNode, number: int) -> NotebookNode:
    """Return an output without what changes from run to run or machine to machine."""
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    if output.output_type == "execute_result":
        output.execution_count = number
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)
    return output


def keep_timings(notebook: NotebookNode, stored: NotebookNode) -> None:
    """Give each unchanged `timing` cell the outputs that `stored` has for it."""
    old = {(c.source, *tags_of(c)): c for c in code_cells(stored) if c.execution_count}
    for cell in code_cells(notebook):
        before = old.get((cell.source, *tags_of(cell)))
        if "timing" in tags_of(cell) and before is not None:
            cell.outputs = [tidy(o, cell.execution_count) for o in before.outputs]


def write_atomically(notebook: NotebookNode, target: Path) -> bool:
    """Write the notebook whole or not at all; return whether its bytes changed."""
    nbformat.validate(notebook)
    data = (nbformat.writes(notebook, version=4).rstrip("\n") + "\n").encode()
    if target.exists() and target.read_bytes() == data:
        return False
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return True

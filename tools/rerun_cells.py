"""Run a chapter once, then each of its cells again in a shuffled order: the outputs must agree.

A learner goes back and runs a cell again. What cells show may not depend on how often, or after
which other cell, they ran. Cells whose output may vary by tag are run, not compared.
"""

import random
from pathlib import Path

from chapter_pairs import read_source, tags_of
from nbformat import NotebookNode
from run_notebook import client_for, quiet_environment, tidy

SEED = 7


def changed_cells(source: Path, folder: Path) -> list[str]:
    """Return a line for each cell of `source` that shows something else when run again."""
    notebook = read_source(source)
    client = client_for(notebook, folder)
    cells = [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    with client.setup_kernel(env=quiet_environment()):
        first = {index: shown(client.execute_cell(cell, index)) for index, cell in cells}
        random.Random(SEED).shuffle(cells)
        again = {index: shown(client.execute_cell(cell, index)) for index, cell in cells}
    return [
        f"{source.stem}: cell {index + 1} showed {first[index]!r}, then {again[index]!r}"
        for index, cell in sorted(cells)
        if first[index] != again[index] and "nbval-ignore-output" not in tags_of(cell)
    ]


def shown(cell: NotebookNode) -> list[NotebookNode]:
    """Return a copy of what a cell shows, without what may change."""
    return [tidy(output.copy(), 0) for output in cell.outputs]

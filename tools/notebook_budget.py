"""How long cells may be, so that a chapter breathes: say, do a few lines, see.

The limits were measured on notebooks that people like to read. Exercise machinery (checks,
hints, solutions) does not count as a run of code.
"""

import re
import statistics
from collections.abc import Iterator

from chapter_pairs import tags_of
from nbformat import NotebookNode
from run_notebook import code_cells

MAX_CELLS = 100
MAX_LINES, NINE_TENTHS_LINES, MEDIAN_LINES = 25, 15, 6
MAX_RUN = 2
MAX_WORDS = 150
SHOWN_SHARE = 0.85
ENOUGH_CELLS = 10  # shares and medians of fewer say nothing
EXERCISE_PARTS = {"check", "hint", "solution", "remove-cell"}
QUIET_PARTS = {"setup", "exercise", "solution", "remove-cell"}


def too_many_cells(notebook: NotebookNode) -> Iterator[str]:
    """A chapter is read in one sitting."""
    if len(notebook.cells) > MAX_CELLS:
        yield f"{len(notebook.cells)} cells, over the limit of {MAX_CELLS}"


def long_code(notebook: NotebookNode) -> Iterator[str]:
    """Code cells are short, most of them very short."""
    lengths = sorted(len(c.source.splitlines()) for c in code_cells(notebook))
    for number, cell in enumerate(code_cells(notebook), start=1):
        if (lines := len(cell.source.splitlines())) > MAX_LINES:
            yield f"code cell {number} has {lines} lines, over the limit of {MAX_LINES}"
    if len(lengths) < ENOUGH_CELLS:
        return
    if (median := statistics.median(lengths)) > MEDIAN_LINES:
        yield f"the median code cell has {median:g} lines, over the limit of {MEDIAN_LINES}"
    if (most := lengths[int(0.9 * (len(lengths) - 1))]) > NINE_TENTHS_LINES:
        yield f"one code cell in ten has {most} lines or more, over {NINE_TENTHS_LINES}"


def code_runs(notebook: NotebookNode) -> Iterator[str]:
    """Never three code cells in a row without a word between them."""
    run = 0
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            run = 0
        elif not EXERCISE_PARTS & set(tags_of(cell)):
            run += 1
            if run == MAX_RUN + 1:
                yield f"cell {number}: code cell {run} in a row without prose"


def long_prose(notebook: NotebookNode) -> Iterator[str]:
    """Prose comes in short cells; tables and HTML rows are not counted."""
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "markdown" and (words := prose_words(cell.source)) > MAX_WORDS:
            yield f"cell {number}: {words} words of prose, over the limit of {MAX_WORDS}"


def prose_words(text: str) -> int:
    """Return the number of words outside tables, HTML lines and code blocks.

    >>> prose_words("Two words\\n| a | table |")
    2
    """
    outside = re.sub(r"^```[\s\S]*?^```", "", text, flags=re.MULTILINE)
    lines = [line for line in outside.splitlines() if not line.lstrip().startswith(("|", "<"))]
    return len(" ".join(lines).split())


def silent_cells(notebook: NotebookNode) -> Iterator[str]:
    """Nearly every cell shows something: the learner sees what it did."""
    cells = [c for c in code_cells(notebook) if not QUIET_PARTS & set(tags_of(c))]
    shown = sum(bool(c.outputs) for c in cells)
    if len(cells) >= ENOUGH_CELLS and shown < SHOWN_SHARE * len(cells):
        yield f"only {shown} of {len(cells)} code cells show something"


BUDGET_GUARDS = (too_many_cells, long_code, code_runs, long_prose, silent_cells)

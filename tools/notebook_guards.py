"""What every stored chapter must keep to. Each guard returns its findings as sentences.

Looking at one notebook is all that a guard does: whether pairs agree is `chapter_pairs`, whether
outputs are still true is nbval.
"""

import re
from collections.abc import Callable, Iterator

from chapter_pairs import tags_of
from nbformat import NotebookNode
from notebook_budget import BUDGET_GUARDS
from run_notebook import WIDGET_VIEW, code_cells

TAGS = {
    "setup", "predict", "widget", "timing", "device", "exercise", "check", "hint", "solution",
    "deep-dive", "instructor", "raises-exception", "gpu", "nbval-ignore-output", "remove-cell",
}  # fmt: skip
MAY_VARY = {"widget", "timing", "device"}
MAX_BYTES = 1_500_000
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/~-])/(?:home|root|tmp|work|usr|opt|var|mnt|private|content|Users)/\w+"
    r"|\b[A-Z]:\\\\?\w+"
)
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
FORBIDDEN_CODE = re.compile(r"\b(past_key_values|key_cache|seen_tokens|FigureWidget)\b")
OUTSIDE_PICTURE = re.compile(r"!\[[^\]]*\]\(https?:|<(?:img|script|link)[^>]*https?:")
KNOWN_METADATA = {"kernelspec", "language_info"}


def unknown_tags(notebook: NotebookNode) -> Iterator[str]:
    """Tags are the known ones; `nbval-skip` is none of them."""
    for where, cell in numbered(notebook):
        for tag in sorted(set(tags_of(cell)) - TAGS):
            yield f"{where}: tag {tag!r} is not one of ours"


def unrun_cells(notebook: NotebookNode) -> Iterator[str]:
    """Every code cell was run, in order; nbval compares nothing in a cell without a count."""
    for number, cell in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != number:
            yield f"code cell {number} carries the count {cell.execution_count}"


def unexcused_ignores(notebook: NotebookNode) -> Iterator[str]:
    """Only cells that show a widget, a time or a device may keep their output uncompared."""
    for where, cell in numbered(notebook):
        if "nbval-ignore-output" in tags_of(cell) and not MAY_VARY & set(tags_of(cell)):
            yield f"{where}: nbval-ignore-output needs one of {', '.join(sorted(MAY_VARY))}"


def absolute_paths(notebook: NotebookNode) -> Iterator[str]:
    """No path of somebody's machine, in a source or in an output."""
    for where, text in texts(notebook):
        for found in ABSOLUTE_PATH.finditer(text):
            yield f"{where}: the path {found.group()!r} is of one machine"


def memory_addresses(notebook: NotebookNode) -> Iterator[str]:
    """No memory address in an output: it changes with every run."""
    for where, cell in numbered(notebook):
        for text in output_texts(cell):
            for found in ADDRESS.finditer(text):
                yield f"{where}: the memory address {found.group()}"


def errors_and_warnings(notebook: NotebookNode) -> Iterator[str]:
    """No error and nothing on stderr, outside cells that raise on purpose; those do raise."""
    for where, cell in numbered(notebook):
        raises = "raises-exception" in tags_of(cell)
        errors = [o for o in cell.get("outputs", []) if o.output_type == "error"]
        if errors and not raises:
            yield f"{where}: an error output, {errors[0].ename}"
        if raises and not errors:
            yield f"{where}: raises-exception, yet nothing was raised"
        if not raises and any(o.get("name") == "stderr" for o in cell.get("outputs", [])):
            yield f"{where}: something on stderr"


def forbidden_code(notebook: NotebookNode) -> Iterator[str]:
    """No name that died with an older transformers, and no 5 MB bundle per figure."""
    for where, cell in numbered(notebook):
        if cell.cell_type == "code":
            for found in FORBIDDEN_CODE.finditer(cell.source):
                yield f"{where}: {found.group()} has no place in a chapter"


def outside_pictures(notebook: NotebookNode) -> Iterator[str]:
    """No picture or script from elsewhere: a page without a network would show a hole."""
    for where, text in texts(notebook):
        if OUTSIDE_PICTURE.search(text):
            yield f"{where}: a picture or script that is fetched from elsewhere"


def widgets_without_picture(notebook: NotebookNode) -> Iterator[str]:
    """A widget cell stores a picture, so that a page without a kernel shows its last state."""
    for where, cell in numbered(notebook):
        data = [o.data for o in cell.get("outputs", []) if "data" in o]
        kept = any("image/svg+xml" in d or "text/html" in d for d in data)
        if "widget" in tags_of(cell) and cell.cell_type == "code" and not kept:
            yield f"{where}: a widget without a stored SVG or HTML picture"


def run_leftovers(notebook: NotebookNode) -> Iterator[str]:
    """No widget state, widget view, time of execution or foreign metadata."""
    for name in sorted(set(notebook.metadata) - KNOWN_METADATA):
        yield f"metadata {name!r} is left over"
    for where, cell in numbered(notebook):
        for name in sorted(set(cell.metadata) - {"tags"}):
            yield f"{where}: metadata {name!r} is left over"
        if any(WIDGET_VIEW in o.get("data", {}) for o in cell.get("outputs", [])):
            yield f"{where}: a widget view that no page can show"


def answered_exercises(notebook: NotebookNode) -> Iterator[str]:
    """An exercise leaves the learner something to do: its code holds `...`."""
    for where, cell in numbered(notebook):
        if cell.cell_type == "code" and "exercise" in tags_of(cell) and "..." not in cell.source:
            yield f"{where}: an exercise without ... to fill in"


def numbered(notebook: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    """Give each cell with its place, as an author counts: from 1, prose included."""
    for number, cell in enumerate(notebook.cells, start=1):
        yield f"cell {number}", cell


def texts(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Give every text a reader may see, with its place."""
    for where, cell in numbered(notebook):
        for text in (cell.source, *output_texts(cell)):
            yield where, text


def output_texts(cell: NotebookNode) -> list[str]:
    """Return all that a cell's outputs say."""
    found = []
    for output in cell.get("outputs", []):
        found += [output[k] for k in ("text", "evalue") if k in output]
        found += output.get("traceback", [])
        found += [v if isinstance(v, str) else str(v) for v in output.get("data", {}).values()]
    return found


GUARDS: tuple[Callable[[NotebookNode], Iterator[str]], ...] = (
    unknown_tags, unrun_cells, unexcused_ignores, absolute_paths, memory_addresses,
    errors_and_warnings, forbidden_code, outside_pictures, widgets_without_picture, run_leftovers,
    answered_exercises, *BUDGET_GUARDS,
)  # fmt: skip


def problems(notebook: NotebookNode, *, size: int) -> list[str]:
    """Return all findings of all guards for a notebook of `size` bytes."""
    found = [line for guard in GUARDS for line in guard(notebook)]
    if size > MAX_BYTES:
        found.append(f"{size:,} bytes, over the page's limit of {MAX_BYTES:,}")
    return found

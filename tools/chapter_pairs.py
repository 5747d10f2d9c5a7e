"""The chapters on disk: which there are, and whether a notebook and its source still agree."""

import hashlib
import re
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ROOT / "chapters"
CELL_FILTER = "tags,-all"
ANNOUNCED = re.compile(r"\b(\d\d) [^<>()]{3,60} \(coming\)")


def sources(chapters: Path = CHAPTERS) -> list[Path]:
    """Return the percent sources of all chapters, in reading order."""
    return sorted((chapters / "src").glob("*.py"))


def notebook_of(source: Path) -> Path:
    """Return where the notebook built from `source` lies."""
    return source.parent.parent / f"{source.stem}.ipynb"


def read_source(source: Path) -> NotebookNode:
    """Return a chapter's source as a notebook without outputs, with stable cell ids."""
    notebook = jupytext.read(source, fmt="py:percent")
    seen: set[str] = set()
    for cell in notebook.cells:
        cell.metadata = NotebookNode({"tags": tags_of(cell)} if tags_of(cell) else {})
        cell.id = stable_id(cell, seen)
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def stable_id(cell: NotebookNode, seen: set[str]) -> str:
    """Return an id that depends on the cell's text alone; the second of a kind is numbered."""
    base = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
    number = 1
    while (name := base if number == 1 else f"{base}-{number}") in seen:
        number += 1
    seen.add(name)
    return name


def tags_of(cell: NotebookNode) -> list[str]:
    """Return the tags of a cell, in the order in which its author wrote them."""
    return list(cell.metadata.get("tags", []))


def differences(source: Path, notebook: Path) -> list[str]:
    """Return what keeps `notebook` from being `source` with outputs; nothing when they agree."""
    if not notebook.exists():
        return [f"{notebook.name}: not built yet"]
    wanted = [(c.cell_type, c.source, tags_of(c)) for c in read_source(source).cells]
    stored = nbformat.read(notebook, as_version=4)
    have = [(c.cell_type, c.source, tags_of(c)) for c in stored.cells]
    if len(wanted) != len(have):
        return [f"{notebook.name}: {len(have)} cells where the source has {len(wanted)}"]
    parts = ("type", "text", "tags")
    return [
        f"{notebook.name}: cell {index} differs from the source in its {part}"
        for index, (old, new) in enumerate(zip(have, wanted, strict=True), start=1)
        for part, a, b in zip(parts, old, new, strict=True)
        if a != b
    ]


def announced_but_here(notebook: Path) -> list[str]:
    """Return a line for each chapter that a stored notebook calls coming though it has come.

    The map and the line at a chapter's top link what is in the folder when they are run.
    """
    text = notebook.read_text(encoding="utf-8") if notebook.exists() else ""
    numbers = sorted(set(ANNOUNCED.findall(text)))
    here = [n for n in numbers if any(notebook.parent.glob(f"{n}_*.ipynb"))]
    return [f"{notebook.name}: says that chapter {n} is coming, and it is here" for n in here]


def is_executed(notebook: Path) -> bool:
    """Return whether every code cell of the stored notebook was run, in order from 1."""
    cells = [c for c in nbformat.read(notebook, as_version=4).cells if c.cell_type == "code"]
    return [c.execution_count for c in cells] == list(range(1, len(cells) + 1))

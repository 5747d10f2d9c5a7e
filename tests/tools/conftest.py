"""Small notebooks that the tools are tried on."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode


def good_notebook() -> NotebookNode:
    """Return a small executed notebook in which every guard finds nothing."""
    notebook = nbformat.v4.new_notebook(metadata={"language_info": {"name": "python"}})
    code = nbformat.v4.new_code_cell("6 * 7", execution_count=1)
    code.outputs = [
        nbformat.v4.new_output("execute_result", {"text/plain": "42"}, execution_count=1)
    ]
    notebook.cells = [nbformat.v4.new_markdown_cell("# How much is it?"), code]
    return notebook


@pytest.fixture
def notebook() -> NotebookNode:
    """Give a notebook in which every guard finds nothing."""
    return good_notebook()


@pytest.fixture
def chapter(tmp_path: Path) -> Callable[[str], Path]:
    """Give a function that writes a percent source into an empty course and returns its path."""

    def write(text: str) -> Path:
        source = tmp_path / "chapters" / "src" / "00_trial.py"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text, encoding="utf-8")
        return source

    return write

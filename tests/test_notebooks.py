"""Every stored chapter agrees with its source and keeps to the course's rules."""

import os
from pathlib import Path

import nbformat
import pytest
from chapter_pairs import CHAPTERS, announced_but_here, differences, notebook_of, sources
from nbformat import NotebookNode
from notebook_guards import GUARDS, MAX_BYTES
from rerun_cells import changed_cells

SOURCES = sources()
RERUN = SOURCES if os.environ.get("KVLAB_TEST_FULL") else SOURCES[:1]
every_chapter = pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)


def stored(source: Path) -> NotebookNode:
    return nbformat.read(notebook_of(source), as_version=4)


@every_chapter
def test_a_notebook_is_its_source_with_outputs(source: Path) -> None:
    assert differences(source, notebook_of(source)) == []


@every_chapter
def test_no_chapter_is_called_coming_that_is_here(source: Path) -> None:
    assert announced_but_here(notebook_of(source)) == []


@every_chapter
@pytest.mark.parametrize("guard", GUARDS, ids=lambda g: g.__name__)
def test_a_chapter_keeps_to(source: Path, guard) -> None:  # type: ignore[no-untyped-def]
    assert list(guard(stored(source))) == []


@every_chapter
def test_a_page_is_light(source: Path) -> None:
    assert notebook_of(source).stat().st_size <= MAX_BYTES


def test_every_notebook_has_a_source() -> None:
    have = {path.stem for path in CHAPTERS.glob("*.ipynb")}
    assert have == {source.stem for source in SOURCES}


@pytest.mark.slow
@pytest.mark.parametrize("source", RERUN, ids=lambda s: s.stem)
def test_any_cell_shows_the_same_when_run_again(source: Path) -> None:
    assert changed_cells(source, CHAPTERS) == []

"""Cells that remember show it when they run again."""

from collections.abc import Callable
from pathlib import Path

from rerun_cells import changed_cells


def test_cells_that_depend_on_nothing_pass(chapter: Callable[[str], Path]) -> None:
    source = chapter("# %%\nx = 6\nprint(x)\n\n# %%\nx * 7\n")
    assert changed_cells(source, source.parent) == []


def test_a_cell_that_counts_its_runs_is_found(chapter: Callable[[str], Path]) -> None:
    source = chapter("# %%\ntotal = globals().get('total', 0) + 1\nprint(total)\n")
    assert len(changed_cells(source, source.parent)) == 1


def test_a_timing_cell_is_not_compared(chapter: Callable[[str], Path]) -> None:
    tags = 'tags=["timing", "nbval-ignore-output"]'
    source = chapter(f"# %% {tags}\nimport time\n\nprint(time.time_ns())\n")
    assert changed_cells(source, source.parent) == []

"""Building a chapter: the same bytes twice, faults named, an old notebook never lost."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import build_chapters
import jupytext
import nbformat
import pytest
from chapter_pairs import ROOT, announced_but_here, differences, notebook_of, read_source
from run_notebook import CellFailed, run_notebook, write_atomically

Chapter = Callable[[str], Path]
TRIAL = """# %% [markdown]
# # How much is it?

# %%
6 * 7

# %% tags=["timing", "nbval-ignore-output"]
import time

print(time.time_ns())

# %% tags=["widget", "nbval-ignore-output"]
import ipywidgets
from IPython.display import HTML, display

display(HTML("<svg role='img'></svg>"), ipywidgets.IntSlider(description="steps"))

# %% [markdown]
# Prints arrive in pieces.

# %%
for number in range(50):
    print(number, flush=True)

# %% tags=["raises-exception"]
raise ValueError("on purpose")
"""


def build(source: Path, *options: str) -> int:
    return build_chapters.main(["--folder", str(source.parent.parent), *options])


def test_two_runs_give_the_same_bytes(chapter: Chapter) -> None:
    source = chapter(TRIAL)
    assert build(source) == 0
    first = notebook_of(source).read_bytes()
    assert build(source, "--all") == 0
    assert notebook_of(source).read_bytes() == first


def test_a_built_notebook_holds_outputs_and_nothing_of_the_machine(chapter: Chapter) -> None:
    source = chapter(TRIAL)
    build(source)
    text = notebook_of(source).read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    counts = [c.execution_count for c in notebook.cells if c.cell_type == "code"]
    assert counts == [1, 2, 3, 4, 5]
    assert "widget-view" not in text and "ipykernel" not in text
    assert [o.output_type for o in notebook.cells[5].outputs] == ["stream"]
    assert notebook.cells[6].outputs[0].traceback == ["ValueError: on purpose"]
    assert "<svg" in str(notebook.cells[3].outputs)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_a_built_notebook_passes_nbval_strictly_and_a_changed_number_fails(
    chapter: Chapter,
) -> None:
    source = chapter(TRIAL)
    build(source)
    command = [sys.executable, str(ROOT / "tools" / "run_nbval.py"), "--mode=strict"]
    target = notebook_of(source)
    assert subprocess.run([*command, str(target)], capture_output=True).returncode == 0
    target.write_text(target.read_text(encoding="utf-8").replace("42", "43"), encoding="utf-8")
    done = subprocess.run([*command, str(target)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "chapters: 0 passed, 1 failed" in done.stdout


def test_only_a_changed_source_is_stale(chapter: Chapter) -> None:
    source = chapter(TRIAL)
    assert build_chapters.is_stale(source)
    build(source)
    assert not build_chapters.is_stale(source)
    chapter(TRIAL.replace("6 * 7", "6 * 8"))
    assert build_chapters.is_stale(source)


def test_an_unchanged_timing_cell_keeps_its_output_and_a_changed_one_does_not(
    chapter: Chapter,
) -> None:
    source = chapter(TRIAL)
    build(source)
    stored = nbformat.read(notebook_of(source), as_version=4)
    chapter(TRIAL.replace("6 * 7", "6 * 8"))
    build(source)
    after = nbformat.read(notebook_of(source), as_version=4)
    assert after.cells[2].outputs == stored.cells[2].outputs
    build(source, "--all", "--new-timings")
    measured = nbformat.read(notebook_of(source), as_version=4)
    assert measured.cells[2].outputs != stored.cells[2].outputs


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import warnings\n\nwarnings.warn('old name')", "stderr"),
        ("import os\n\nos._exit(1)", "died"),
    ],
)
def test_a_failing_cell_is_named_and_leaves_the_notebook(
    chapter: Chapter, capsys: pytest.CaptureFixture[str], cell: str, said: str
) -> None:
    source = chapter("# %%\n6 * 7\n")
    build(source)
    before = notebook_of(source).read_bytes()
    chapter(f"# %%\n{cell}\n")
    assert build(source) == 1
    assert said in capsys.readouterr().err
    assert notebook_of(source).read_bytes() == before


def test_an_interrupt_while_writing_leaves_the_old_notebook(
    chapter: Chapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = chapter("# %%\n6 * 7\n")
    build(source)
    before = notebook_of(source).read_bytes()

    def interrupted(self: Path, data: bytes) -> None:
        with self.open("wb") as file:
            file.write(data[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    notebook = read_source(source)
    notebook.cells[0].source = "6 * 8"
    with pytest.raises(KeyboardInterrupt):
        write_atomically(notebook, notebook_of(source))
    assert notebook_of(source).read_bytes() == before
    left = sorted(p.name for p in notebook_of(source).parent.iterdir())
    assert left == ["00_trial.ipynb", "src"]


def test_a_cell_that_raises_nothing_on_stderr_may_raise_on_purpose(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("raise ValueError('bad')")]
    with pytest.raises(CellFailed, match="bad"):
        run_notebook(notebook, tmp_path)


def test_a_difference_names_the_cell_and_the_part(chapter: Chapter) -> None:
    source = chapter(TRIAL)
    build(source)
    chapter(TRIAL.replace("6 * 7", "6 * 8").replace('["timing", ', '["device", '))
    found = differences(source, notebook_of(source))
    assert [line.split(": ")[1] for line in found] == [
        "cell 2 differs from the source in its text",
        "cell 3 differs from the source in its tags",
    ]


def test_jupytext_itself_agrees_with_the_pairing(chapter: Chapter) -> None:
    source = chapter(TRIAL)
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (source.parents[2] / "pyproject.toml").write_text(config, encoding="utf-8")
    build(source)
    target = notebook_of(source)
    before = jupytext.read(target)
    sync = [sys.executable, "-m", "jupytext", "--sync", str(target)]
    subprocess.run(sync, check=True, capture_output=True)
    assert source.read_text(encoding="utf-8") == TRIAL
    assert jupytext.read(target).cells == before.cells


def test_a_chapter_called_coming_is_found_once_it_has_come(tmp_path: Path) -> None:
    first = tmp_path / "00_start.ipynb"
    first.write_text("<td>01 Follow one token (coming)</td>", encoding="utf-8")
    assert announced_but_here(first) == []
    (tmp_path / "01_follow.ipynb").touch()
    assert "chapter 01" in announced_but_here(first)[0]

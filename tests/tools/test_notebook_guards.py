"""Each guard is tried on a notebook broken on purpose: one that cannot fail guards nothing."""

from collections.abc import Callable

import notebook_budget
import notebook_guards
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from notebook_guards import GUARDS, MAX_BYTES, problems

Break = Callable[[NotebookNode], object]


def code(notebook: NotebookNode) -> NotebookNode:
    return notebook.cells[1]


def tag(*tags: str) -> Break:
    return lambda notebook: code(notebook).metadata.update(tags=list(tags))


def say(text: str) -> Break:
    return lambda notebook: code(notebook).update(outputs=[new_output("stream", text=text)])


def source(text: str) -> Break:
    return lambda notebook: code(notebook).update(source=text)


def add(*cells: NotebookNode) -> Break:
    return lambda notebook: notebook.cells.extend(cells)


def several(*breaks: Break) -> Break:
    return lambda notebook: [one(notebook) for one in breaks]


HOME = "/".join(["", "home", "someone"])
ERROR = new_output("error", ename="ValueError", evalue="no", traceback=["no"])
VIEW = {"application/vnd.jupyter.widget-view+json": {}, "text/html": "<svg></svg>"}
BROKEN: list[tuple[str, Break]] = [
    ("unknown_tags", tag("nbval-skip")),
    ("unknown_tags", tag("slideshow")),
    ("unrun_cells", lambda n: code(n).update(execution_count=None)),
    ("unrun_cells", lambda n: code(n).update(execution_count=2)),
    ("unexcused_ignores", tag("nbval-ignore-output")),
    ("absolute_paths", say(f"{HOME}/kvlab/data")),
    ("absolute_paths", say(r"C:\Users\someone")),
    ("absolute_paths", source(f"open('{HOME}/file')")),
    ("absolute_paths", add(new_markdown_cell(f"Look into {HOME}."))),
    ("memory_addresses", say("<object at 0x7f3aa0b1c2d0>")),
    ("errors_and_warnings", lambda n: code(n).update(outputs=[ERROR])),
    ("errors_and_warnings", tag("raises-exception")),
    (
        "errors_and_warnings",
        lambda n: code(n).update(outputs=[new_output("stream", name="stderr", text="careful")]),
    ),
    ("forbidden_code", source("model(ids, past_key_values=cache)")),
    ("forbidden_code", source("go.FigureWidget()")),
    ("outside_pictures", add(new_markdown_cell("[![badge](https://x.org/badge.svg)](a)"))),
    ("outside_pictures", say('<script src="https://x.org/x.js"></script>')),
    ("widgets_without_picture", tag("widget")),
    ("run_leftovers", lambda n: n.metadata.update(widgets={})),
    ("run_leftovers", lambda n: code(n).metadata.update(execution={})),
    ("run_leftovers", lambda n: code(n).update(outputs=[new_output("display_data", VIEW)])),
    ("answered_exercises", several(tag("exercise"), source("answer = 5"))),
    ("too_many_cells", lambda n: n.cells.extend(new_markdown_cell("word") for _ in range(99))),
    ("long_code", source("x = 1\n" * 26)),
    (
        "long_code",
        lambda n: n.cells.extend(new_code_cell("x = 1\n" * 7) for _ in range(12)),
    ),
    (
        "long_code",
        lambda n: n.cells.extend(new_code_cell("x\n" * (16 if i < 3 else 1)) for i in range(12)),
    ),
    ("code_runs", add(new_code_cell("1"), new_code_cell("2"))),
    ("long_prose", add(new_markdown_cell("word " * 151))),
    ("silent_cells", lambda n: n.cells.extend(new_code_cell("x = 1") for _ in range(10))),
]


def test_a_good_notebook_passes_every_guard(notebook: NotebookNode) -> None:
    assert problems(notebook, size=1000) == []


@pytest.mark.parametrize(("guard", "break_it"), BROKEN)
def test_a_guard_finds_its_fault(notebook: NotebookNode, guard: str, break_it: Break) -> None:
    check = getattr(notebook_guards, guard, None) or getattr(notebook_budget, guard)
    assert list(check(notebook)) == []
    break_it(notebook)
    assert list(check(notebook))


def test_every_guard_is_tried() -> None:
    assert {guard.__name__ for guard in GUARDS} == {name for name, _ in BROKEN}


def test_a_heavy_page_is_found(notebook: NotebookNode) -> None:
    assert problems(notebook, size=MAX_BYTES + 1)


def test_a_widget_may_keep_its_output_uncompared(notebook: NotebookNode) -> None:
    tag("widget", "nbval-ignore-output")(notebook)
    code(notebook).outputs = [new_output("display_data", {"text/html": "<svg></svg>"})]
    assert problems(notebook, size=1000) == []


def test_web_addresses_and_closing_tags_are_no_paths(notebook: NotebookNode) -> None:
    text = f"<b>x</b> https://example.org{HOME} and tokens{HOME}"
    notebook.cells.append(new_markdown_cell(text))
    assert problems(notebook, size=1000) == []


def test_exercise_machinery_is_no_run_of_code(notebook: NotebookNode) -> None:
    parts = ("exercise", "check", "hint", "solution")
    for count, part in enumerate(parts, start=2):
        cell = new_code_cell("answer = ...", execution_count=count, metadata={"tags": [part]})
        notebook.cells.append(cell)
    assert problems(notebook, size=1000) == []

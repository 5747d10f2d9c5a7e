"""The parts of `tools/measure_lab.py` that need no browser."""

from pathlib import Path

import measure_lab
import nbformat

from kvlab.bench.widget_list import widget_makers


class Socket:
    """A stand-in for the browser's socket: keeps what it was told to call."""

    def __init__(self, url: str) -> None:
        self.url, self.calls = url, {}

    def on(self, name: str, call: object) -> None:
        """Keep a callback."""
        self.calls[name] = call


def test_each_widget_gets_a_notebook_of_its_own(tmp_path: Path) -> None:
    names = measure_lab.widget_notebooks(tmp_path)
    assert names == list(widget_makers())
    assert {path.stem for path in tmp_path.glob("*.ipynb")} == set(names)
    cell = nbformat.read(tmp_path / "planner.ipynb", as_version=4).cells[0]
    assert "widget_makers()['planner']()" in cell.source


def test_outputs_are_cleared_so_that_a_picture_is_a_live_one(tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    cell = nbformat.v4.new_code_cell("1", execution_count=3)
    cell.outputs = [nbformat.v4.new_output("stream", text="old")]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    measure_lab.without_outputs(path)
    (read,) = nbformat.read(path, as_version=4).cells
    assert (read.outputs, read.execution_count) == ([], None)


def test_only_the_kernels_socket_is_counted_in_both_directions() -> None:
    tab = Socket("")
    sizes = measure_lab.count_bytes(tab)
    kernel, other = Socket("ws://x/api/kernels/1/channels"), Socket("ws://x/else")
    for socket in (kernel, other):
        tab.calls["websocket"](socket)
    kernel.calls["framesent"](b"abc")
    kernel.calls["framereceived"]("\u00e9")
    assert (sizes, other.calls) == ([3, 2], {})

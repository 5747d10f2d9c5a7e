"""Measure JupyterLab in a real Chromium and print the numbers as JSON, for `kvlab bench`.

    python tools/measure_lab.py sliders 12    # key presses on each slider of each widget
    python tools/measure_lab.py open 2        # each chapter opened so often, to its first picture

Run it with `tests/browser` on the path; the bench does. Nothing is asserted here.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lab_scripts as js
import nbformat
from chapter_pairs import CHAPTERS, notebook_of, sources
from lab_page import LabPage
from lab_server import LabServer, running_lab

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
PICTURE = (
    ".jp-Cell-outputArea .jp-RenderedSVG img, .jp-Cell-outputArea .kvlab-picture svg, "
    ".jp-Cell-outputArea .jp-OutputArea-output svg, .jp-Cell-outputArea .js-plotly-plot"
)
SETTLE_MS, PATIENCE_MS = 60, 3000


@contextmanager
def browser() -> Iterator[Any]:
    """Give Chromium, headless; ends the program with one line where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("playwright is not installed: pip install -r requirements-test.txt")
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not found:
        sys.exit("no Chromium here; on Debian or Ubuntu: apt install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        try:
            yield chromium
        finally:
            chromium.close()


def sliders(presses: int) -> dict[str, Any]:
    """Press an arrow key on every slider; return the milliseconds and the bytes of each press."""
    steps: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="kvlab-") as name, browser() as chromium:
        folder = Path(name)
        (folder / "notebooks").mkdir()
        makers = widget_notebooks(folder / "notebooks")
        (folder / "lab").mkdir()
        with running_lab(folder / "notebooks", folder / "lab") as lab:
            for widget in makers:
                tab = chromium.new_page(viewport={"width": 1280, "height": 1000})
                wire = count_bytes(tab)
                page = LabPage(tab, lab)
                page.open(f"{widget}.ipynb")
                page.run_all()
                for handle in page.controls("slider"):
                    steps += pressed(page, handle, wire, widget, presses)
                tab.close()
                lab.end_kernels()
    return {"steps": steps}


def widget_notebooks(folder: Path) -> list[str]:
    """Write a notebook for each widget of the bench's list; return the names of the widgets."""
    from kvlab.bench.widget_list import widget_makers

    names = list(widget_makers())
    for name in names:
        code = f"from kvlab.bench.widget_list import widget_makers\nwidget_makers()[{name!r}]()"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, folder / f"{name}.ipynb")
    return names


def count_bytes(tab: Any) -> list[int]:
    """Return a list to which the size of every frame of the kernel's socket is added."""
    sizes: list[int] = []

    def note(payload: str | bytes) -> None:
        sizes.append(len(payload if isinstance(payload, bytes) else payload.encode()))

    def on_socket(socket: Any) -> None:
        if "/channels" in socket.url:
            socket.on("framesent", note)
            socket.on("framereceived", note)

    tab.on("websocket", on_socket)
    return sizes


def pressed(
    page: LabPage, handle: Any, wire: list[int], widget: str, presses: int
) -> list[dict[str, Any]]:
    """Press the arrow keys on one slider, to the right and, from the middle on, back again."""
    name, _ = handle.evaluate(js.NAME)
    handle.scroll_into_view_if_needed()
    found = []
    for number in range(presses):
        key = "ArrowRight" if number < presses / 2 else "ArrowLeft"
        handle.focus()
        before = handle.get_attribute("aria-valuenow")
        handle.evaluate(js.WATCH)
        wire.clear()
        page.page.keyboard.press(key)
        taken = drawn(page)
        if handle.get_attribute("aria-valuenow") == before:
            continue  # the slider stood at its end: nothing was asked
        found.append({"slider": f"{widget}: {name}", "ms": taken, "bytes": sum(wire)})
    return found


def drawn(page: LabPage) -> float | None:
    """Wait until the picture is drawn anew and the wire is still; return the milliseconds."""
    taken = None
    for _ in range(PATIENCE_MS // SETTLE_MS):
        page.page.wait_for_timeout(SETTLE_MS)
        _, taken = page.page.evaluate(js.RESULT)
        if taken is not None:
            break
    page.page.wait_for_function(js.IDLE, timeout=PATIENCE_MS * 10)
    page.page.wait_for_timeout(SETTLE_MS)
    return taken


def opened(rounds: int, names: list[str]) -> dict[str, Any]:
    """Open each chapter without stored outputs, run it, and time the way to its first picture.

    Chapter 12 replays, whatever engine is installed here: starting one takes minutes.
    """
    os.environ["KVLAB_ENGINES"] = "replay"
    chapters = [notebook_of(source) for source in sources()]
    chosen = [c for c in chapters if not names or c.stem.startswith(tuple(names))]
    seconds: dict[str, list[float]] = {chapter.stem: [] for chapter in chosen}
    with (
        tempfile.TemporaryDirectory(prefix="kvlab-") as name,
        browser() as chromium,
        running_lab(CHAPTERS, Path(name)) as lab,
    ):
        for chapter in chosen:
            without_outputs(Path(name) / "root" / chapter.name)
        for _ in range(rounds):
            for chapter in chosen:
                seconds[chapter.stem].append(first_picture(chromium, lab, chapter.name))
    return {"seconds": seconds}


def without_outputs(path: Path) -> None:
    """Clear the outputs of a notebook, so that the first picture seen is drawn by its kernel."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)


def first_picture(chromium: Any, lab: LabServer, notebook: str) -> float:
    """Return the seconds from asking for a chapter's page to its first picture."""
    tab = chromium.new_page(viewport={"width": 1280, "height": 1000})
    started = time.perf_counter()
    tab.goto(lab.address(notebook))
    tab.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
    tab.wait_for_function(js.READY, timeout=90_000, polling=20)
    tab.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    tab.wait_for_selector(PICTURE, timeout=240_000, state="attached")
    taken = time.perf_counter() - started
    tab.close()
    lab.end_kernels()
    return taken


def main(arguments: list[str]) -> None:
    """Measure what was asked for and print one line of JSON."""
    what, count, *names = arguments
    found = sliders(int(count)) if what == "sliders" else opened(int(count), names)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The driver is tried on small notebooks: it sees what works, and each thing that does not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from lab_page import LabPage
from lab_server import LabServer, running_lab
from playwright.sync_api import Browser

TOY = """import ipywidgets as w

slider = w.IntSlider(value=2, min=0, max=5, description="heads")
button = w.Button(description="double")
picture = w.HTML()


def draw(*_):
    label = f"{slider.value} heads"
    picture.value = f'<svg role="img" aria-label="{label}" width="300" height="30">' + "".join(
        f'<rect x="{30 * i}" width="26" height="26" fill="#0072B2"/>' for i in range(slider.value)
    ) + f"</svg><p>{label}</p>"


def double(_):
    slider.value = slider.value * 2


slider.observe(draw, "value")
button.on_click(double)
draw()
box = w.VBox([slider, button, picture])
box.add_class("kvlab-toy")
box"""
POOR = (
    TOY.replace('slider.observe(draw, "value")\n', "")
    .replace("button.on_click(double)\n", "button.tabbable = False\n")
    .replace('role="img" aria-label="{label}"', 'role="img"')
)
STDERR = "import warnings\n\nwarnings.warn('an old name')"
SHOW = "from IPython.display import HTML\n\nHTML('{}')"
OUTSIDE = SHOW.format('<img src="http://203.0.113.1/x.png" alt="x">')
CONSOLE = SHOW.format('<script>console.error("bad")</script>')
NOTEBOOKS = {
    "toy": [(TOY, []), ("1 / 0", ["raises-exception"])],
    "poor": [(POOR, [])],
    "faults": [(text, []) for text in (STDERR, OUTSIDE, CONSOLE, "1 / 0", "print('never')")],
}


def write_notebooks(folder: Path) -> None:
    for name, cells in NOTEBOOKS.items():
        notebook = nbformat.v4.new_notebook()
        notebook.metadata.kernelspec = {"display_name": "Python 3", "name": "python3"}
        notebook.cells = [
            nbformat.v4.new_code_cell(text, metadata={"tags": tags}) for text, tags in cells
        ]
        nbformat.write(notebook, folder / f"{name}.ipynb")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[LabServer]:
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebooks(folder)
    with running_lab(folder, tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture
def ran(lab: LabServer, browser: Browser) -> Iterator[Callable[..., LabPage]]:
    pages = []

    def open_and_run(name: str, theme: str = "Light") -> LabPage:
        pages.append(browser.new_page())
        page = LabPage(pages[-1], lab)
        page.open(f"{name}.ipynb", theme)
        page.run_all()
        return page

    yield open_and_run
    for page in pages:
        page.close()
    lab.end_kernels()


def test_a_widget_that_works_is_seen_to_work(
    ran: Callable[..., LabPage], axe: Path, tmp_path: Path
) -> None:
    page = ran("toy")
    assert page.problems() == []
    (moved,) = page.move_sliders()
    assert (
        moved.control == "heads"
        and moved.changed
        and moved.milliseconds is not None
        and moved.milliseconds > 0
    )
    assert [button.changed for button in page.press_buttons()] == [True]
    assert page.unreachable() == []
    assert page.accessibility(axe) == []
    assert all(file.stat().st_size > 1000 for file in page.shots(tmp_path, "toy"))


def test_the_dark_theme_is_dark(ran: Callable[..., LabPage]) -> None:
    page = ran("toy", "Dark")
    assert page.problems() == []
    colour = "() => getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')"
    assert page.page.evaluate(colour).strip() in ("#111111", "#111", "rgb(17, 17, 17)")


def test_poor_controls_and_pictures_are_found(ran: Callable[..., LabPage], axe: Path) -> None:
    page = ran("poor")
    assert page.problems() == []
    assert [one.changed for one in page.move_sliders() + page.press_buttons()] == [False, False]
    assert "svg-img-alt" in " ".join(page.accessibility(axe))
    assert "double" in " ".join(page.unreachable())


def test_what_goes_wrong_is_found(ran: Callable[..., LabPage]) -> None:
    found = " ".join(ran("faults").problems())
    for said in (
        "UserWarning: an old name",
        "asked the outside: http://203.0.113.1",
        "console: bad",
        "ZeroDivisionError: division by zero",
        "cell not run: print",
    ):
        assert said in found

"""A mock interview in a real browser, from the start to the report, with the keyboard alone."""

from pathlib import Path

import nbformat
import pytest
from lab_page import LabPage
from lab_server import running_lab
from playwright.sync_api import Browser

CELL = """from kvlab.course.asked import Asked
from kvlab.course.bank import find_question
from kvlab.course.interview import Interview
from kvlab.course.progress import Progress
from kvlab.widgets.mock_interview import MockInterview

names = ("02-cached-forwards", "02-is-it-linear", "02-growth-per-step")
asked = [Asked(find_question(name), 1) for name in names]
MockInterview(Interview(asked, minutes=10, progress=Progress()))"""
ACTIVE = """() => {
  const e = document.activeElement;
  const label = e.labels && e.labels.length ? e.labels[0].innerText : e.innerText;
  const described = e.closest('.jupyter-widgets')?.querySelector('.widget-label')?.innerText;
  return [label || '', described || ''].map(text => text.trim());
}"""
STEPS = 60


def tab_to(page: LabPage, name: str) -> int:
    """Press Tab until the focus is on a control of that name; return how often it took."""
    seen: list[list[str]] = []
    for key in ("Tab", "Shift+Tab"):
        for step in range(STEPS):
            seen.append(page.page.evaluate(ACTIVE))
            if name in seen[-1]:
                return step
            page.page.keyboard.press(key)
    raise AssertionError(f"no way to {name!r} by Tab, only to {seen}")


def press(page: LabPage, *keys: str) -> None:
    for key in keys:
        page.page.keyboard.press(key)
    page.settle()


@pytest.mark.slow
def test_an_interview_is_sat_with_the_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.metadata.kernelspec = {"display_name": "Python 3", "name": "python3"}
    notebook.cells = [nbformat.v4.new_code_cell(CELL)]
    (tmp_path / "made").mkdir()
    nbformat.write(notebook, tmp_path / "made" / "talk.ipynb")
    with running_lab(tmp_path / "made", tmp_path) as lab:
        page = LabPage(browser.new_page(viewport={"width": 1280, "height": 1000}), lab)
        page.open("talk.ipynb")
        page.run_all()
        steps = [tab_to(page, "start")]
        press(page, "Enter")
        steps.append(tab_to(page, "your answer"))
        press(page, "7", "Enter")
        steps.append(tab_to(page, "I have said it"))
        press(page, "Enter")
        steps.append(tab_to(page, "your answer"))
        press(page, "b", "Enter")
        steps.append(tab_to(page, "point 1: scope"))
        press(page, "Space")
        steps.append(tab_to(page, "keep these points"))
        press(page, "Enter")
        page.page.wait_for_selector("text=of 3 right", timeout=5000)
        assert page.problems() == []
        assert steps[1:5] == [0, 0, 0, 0], "the focus leads to where the answer goes"

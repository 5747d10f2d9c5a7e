"""Chapters in real JupyterLab: they run, every control works, and light and dark show no error.

Two chapters by default; `KVLAB_BROWSER_CHAPTERS` names others ("all", or "03 07"). Screenshots
and the times from a key press to the picture drawn anew lie in build/shots; no time is asserted.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chapter_pairs import CHAPTERS, ROOT, notebook_of, sources
from lab_page import LabPage, Moved
from lab_server import LabServer, running_lab
from playwright.sync_api import Browser

SHOTS = ROOT / "build" / "shots"
BY_DEFAULT = 2
"""The first chapters have the most widgets and are opened by everybody."""


def chosen() -> list[Path]:
    every = [notebook_of(source) for source in sources()]
    names = os.environ.get("KVLAB_BROWSER_CHAPTERS", "").split()
    if names == ["all"]:
        return every
    return [n for n in every if n.stem.startswith(tuple(names))] if names else every[:BY_DEFAULT]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[LabServer]:
    with running_lab(CHAPTERS, tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture
def page(lab: LabServer, browser: Browser) -> Iterator[LabPage]:
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    yield LabPage(tab, lab)
    tab.close()
    lab.end_kernels()


@pytest.mark.parametrize("notebook", chosen(), ids=lambda n: n.stem)
def test_every_control_of_a_chapter_works(page: LabPage, notebook: Path, axe: Path) -> None:
    page.open(notebook.name)
    page.run_all()
    page.shots(SHOTS, f"{notebook.stem}-light")
    moved = page.move_sliders()
    worked = [*moved, *page.fill_fields(), *page.press_buttons()]
    record(notebook.stem, worked)
    assert [slider.control for slider in moved if not slider.changed] == []
    assert {one.cell for one in worked} == {one.cell for one in worked if one.changed}
    assert page.problems() == []
    assert page.unreachable() == []
    assert page.accessibility(axe) == []


@pytest.mark.parametrize("notebook", chosen(), ids=lambda n: n.stem)
def test_a_chapter_runs_in_the_dark_theme(page: LabPage, notebook: Path, axe: Path) -> None:
    page.open(notebook.name, "Dark")
    page.run_all()
    page.shots(SHOTS, f"{notebook.stem}-dark")
    assert page.problems() == []
    assert page.accessibility(axe) == []


def record(chapter: str, worked: list[Moved]) -> None:
    rows = [vars(one) for one in worked]
    SHOTS.mkdir(parents=True, exist_ok=True)
    (SHOTS / f"{chapter}-times.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    for one in worked:
        took = "unchanged" if one.milliseconds is None else f"{one.milliseconds} ms"
        print(f"{chapter}, cell {one.cell}, {one.control!r}: {took}")

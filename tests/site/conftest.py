"""One built site for all tests of it, and pages of it in Chromium with the network off."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import axe, browser
from filelock import FileLock
from playwright.sync_api import Browser
from site_page import SitePage

from kvlab.figures.curves import Axis, Series
from kvlab.figures.lines import line_chart
from tools.site.build import build_site

__all__ = ["axe", "browser"]  # fixtures of tests/helpers/chromium.py


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what drives Chromium, so that it runs in a part of its own."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and "tab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Give the folder of the site, built once from the chapters, by whichever worker is first."""
    base = tmp_path_factory.getbasetemp()
    out = (base if worker_id == "master" else base.parent) / "site"
    with FileLock(f"{out}.lock"):
        if not out.exists():
            build_site(out=out)
    return out


@pytest.fixture(scope="session")
def one_chapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with one small chapter: text, code, and two charts of plotly."""
    folder = tmp_path_factory.mktemp("chapters")
    line = Series("cached", [1, 2, 3], [10, 20, 30], "value")
    axes = {"x": Axis("new tokens"), "y": Axis("token-forwards")}
    cells: list[dict[str, object]] = [
        {"cell_type": "markdown", "metadata": {}, "source": "# 00 Start here\n\nText."}
    ]
    for points in (False, True):
        data = line_chart([line], points=points, **axes)._repr_mimebundle_()
        data["application/vnd.plotly.v1+json"] = json.loads(
            json.dumps(data["application/vnd.plotly.v1+json"], default=list)
        )
        output = {"output_type": "execute_result", "data": data, "metadata": {}}
        cells.append(
            {"cell_type": "code", "metadata": {}, "source": "chart()", "outputs": [output]}
        )
    document = json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
    (folder / "00_start_here.ipynb").write_text(document, encoding="utf-8")
    return folder


@pytest.fixture
def tab(browser: Browser, built: Path) -> Iterator[SitePage]:
    """Give a page of the browser that opens the site from the disk, without a network."""
    with SitePage.opened(browser, built) as page:
        yield page

"""A chart of plotly: interactive, in the page's theme, its script loaded where it is needed."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser
from site_page import NARROW, SitePage

from tools.site.build import build_site

PAGE = "00_start_here.html"


@pytest.fixture(scope="module")
def charts(one_chapter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("charts") / "site"
    build_site(one_chapter, out)
    return out


def test_the_script_is_there_once_and_loaded_on_that_page_alone(charts: Path) -> None:
    loads = {p.name: p.read_text(encoding="utf-8").count('src="assets/plotly.min.js"')
             for p in charts.glob("*.html")}  # fmt: skip
    assert loads.pop(PAGE) == 1 and set(loads.values()) == {0}
    assert len(list(charts.rglob("plotly*.js"))) == 1


def test_a_chart_answers_the_mouse_in_the_colours_of_the_page(
    browser: Browser, charts: Path, axe: Path
) -> None:
    with SitePage.opened(browser, charts) as tab:
        page = tab.goto(PAGE)
        assert tab.silent_charts() == [] and page.locator(".chart").count() == 2
        said = page.locator(".hoverlayer .hovertext").last.text_content()
        assert "new tokens: " in said and "token-forwards: " in said
        ink = "getComputedStyle(document.querySelector('.plot .xtitle')).fill"
        light = page.evaluate(ink)
        page.get_by_role("button", name="Switch to the dark theme").click()
        page.wait_for_function(f"{ink} !== {light!r}")
        assert page.evaluate(ink) == "rgb(236, 236, 236)"
        tab.load_axe(axe)
        assert tab.accessibility() + tab.problems == []
        page.set_viewport_size(NARROW)
        page.wait_for_timeout(300)
        assert tab.sideways() <= 0


def test_the_still_picture_stays_where_no_script_runs(browser: Browser, charts: Path) -> None:
    with SitePage.opened(browser, charts, java_script_enabled=False) as tab:
        page = tab.goto(PAGE)
        assert page.locator(".chart .still svg").first.is_visible()
        assert not page.locator(".chart .plot").first.is_visible()

"""Every demo in a real browser: all that can be worked changes the page, in light and in dark."""

import importlib.util
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from served_demo import Served

from kvlab.demo.registry import DEMOS

ROOT = Path(__file__).resolve().parents[2]
SERIOUS = ("serious", "critical")
NAMES = [demo.name for demo in DEMOS]
pytestmark = pytest.mark.browser


def browser_tools() -> Any:
    """Give the conftest of the browser tests: which Chromium, with what arguments, and axe."""
    spec = importlib.util.spec_from_file_location(
        "browser_tools", ROOT / "tests/browser/conftest.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOLS = browser_tools()
axe = TOOLS.axe


def until(page: Page, script: str, arg: Any = None, *, seconds: float = 20) -> bool:
    """Wait until a script gives true; the page's own rules forbid what Playwright would do."""
    end = time.monotonic() + seconds
    while not page.evaluate(script, arg):
        if time.monotonic() > end:
            return False
        page.wait_for_timeout(15)
    return True


IDLE = "document.body.dataset.busy === 'false' && !document.body.dataset.asking"
PARTS = ("picture", "numbers", "sentence", "event", "error")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give Chromium for this file alone: while it is open, this thread has an event loop."""
    found = os.environ.get("KVLAB_CHROMIUM") or next(
        filter(None, map(shutil.which, TOOLS.CHROMIUM)), None
    )
    if not found:
        pytest.skip("no Chromium here; on Debian or Ubuntu: apt install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=TOOLS.ARGUMENTS)
        yield chromium
        chromium.close()


class Shown:
    """A demo open in a tab, and all that went wrong while it was."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page, self.served, self.wrong = page, served, []
        page.on("console", lambda m: m.type in ("error", "warning") and self.wrong.append(m.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self._note)
        page.goto(served.server.address)
        page.wait_for_selector("body[data-version]")

    def _note(self, request: Any) -> None:
        if not request.url.startswith(self.served.server.address):
            self.wrong.append(f"asked {request.url}")

    def seen(self) -> str:
        """What the room sees: the picture, the numbers and the words."""
        script = "p => p.map(i => document.getElementById(i).innerHTML).join()"
        return self.page.evaluate(script, PARTS)

    def changed_by(self, action: Callable[[], object]) -> bool:
        """Do something and say whether the room sees it."""
        before = self.seen()
        action()
        script = "([p, b]) => p.map(i => document.getElementById(i).innerHTML).join() !== b"
        assert until(self.page, IDLE, seconds=60)
        return until(self.page, script, [PARTS, before], seconds=0.2)

    def work(self, name: str) -> bool:
        """Work one control with the keyboard, from the example on, there and back."""
        home = self.page.get_by_role("button", name="back to the example")
        if home.count():
            home.click()
            until(self.page, IDLE)
        control = self.page.locator(f'#controls [data-name="{name}"]')
        if not control.count():
            return True  # another question has other controls
        kind = control.evaluate("e => e.type || e.tagName.toLowerCase()")
        control.focus()
        press = self.page.keyboard.press
        if kind in ("text", "textarea", "number"):
            typed = "7" if kind == "number" else "12 GB"
            return self.changed_by(lambda: (control.fill(typed), press("Tab")))
        if kind == "checkbox":
            return self.changed_by(lambda: press("Space"))
        keys = ("ArrowRight", "ArrowLeft", "ArrowLeft")
        if kind == "select-one":
            keys = ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp")
        return any(self.changed_by(lambda key=key: press(key)) for key in keys)

    def controls(self) -> list[str]:
        script = (
            "all => all.filter(e => !e.disabled && e.tagName !== 'BUTTON').map(e => e.dataset.name)"
        )
        return self.page.locator("#controls [data-name]").evaluate_all(script)

    def unreached(self) -> list[str]:
        """Return what can be worked and is not reached by the Tab key."""
        mark = """() => [...document.querySelectorAll('button, select, input, textarea')]
            .filter(e => !e.disabled && e.offsetParent)
            .map((e, n) => (e.dataset.n = n, e.outerHTML))"""
        every = self.page.evaluate(mark)
        reached = set()
        for _ in range(len(every) + 4):
            self.page.keyboard.press("Tab")
            reached.add(self.page.evaluate("document.activeElement.dataset.n"))
        return [html for n, html in enumerate(every) if str(n) not in reached]

    def serious(self, axe: Path, theme: str) -> list[str]:
        """Return axe-core's serious findings in a theme."""
        self.page.emulate_media(color_scheme=theme)
        if not self.page.evaluate("typeof axe !== 'undefined'"):
            self.page.evaluate(axe.read_text(encoding="utf-8") + "\n; void 0")
        found = self.page.evaluate("async () => (await axe.run(document)).violations")
        return [
            f"{v['id']}: {n['html'][:160]}"
            for v in found
            if v["impact"] in SERIOUS
            for n in v["nodes"]
        ]


@pytest.fixture
def show(browser: Browser, serve: Callable[[str], Served]) -> Iterator[Callable[[str], Shown]]:
    tabs: list[Page] = []

    def open_demo(name: str, **options: Any) -> Shown:
        tabs.append(browser.new_page(viewport={"width": 1280, "height": 720}, **options))
        return Shown(tabs[-1], serve(name))

    yield open_demo
    for tab in tabs:
        tab.close()


QUIET = {("memory-bar", "ghost")}
"""The ghost of a table has rows for one model alone."""
AS_BEFORE = {("allocators", 1)}
"""Presets that show what playing the one before them ended with."""


@pytest.mark.parametrize("name", NAMES)
def test_every_control_and_preset_of_a_demo_changes_what_the_room_sees(
    show: Callable[[str], Shown], name: str, axe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvlab.demo.show_questions.randrange", lambda most: 1)
    shown = show(name)
    page, demo = shown.page, shown.served.session.demo
    unmoved = [c for c in shown.controls() if (name, c) not in QUIET and not shown.work(c)]
    assert unmoved == []
    presets, drawn = page.locator("#presets button"), ""
    assert presets.count() == sum(len(stage.presets) for stage in demo.stages)
    for at in range(presets.count() if name != "race" else 3):  # live races: see below
        key = str(at + 1)
        assert shown.changed_by(
            presets.nth(at).click if at % 2 else lambda k=key: page.keyboard.press(k)
        )
        before, drawn = drawn, page.locator("#picture").inner_html()
        assert drawn != before or (name, at) in AS_BEFORE
        assert page.locator("#sentence").inner_text().strip()
        assert presets.nth(at).get_attribute("aria-pressed") == "true"
    assert shown.serious(axe, "light") + shown.serious(axe, "dark") == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    arrows = [
        shown.changed_by(lambda k=k: page.keyboard.press(k)) for k in ("ArrowLeft", "ArrowRight")
    ]
    assert any(arrows)
    assert shown.unreached() == []
    assert shown.wrong == []


def test_keys_for_a_room(show: Callable[[str], Shown]) -> None:
    page = (shown := show("memory-bar")).page
    size = "parseFloat(getComputedStyle(document.documentElement).fontSize)"
    usual = page.evaluate(size)
    page.keyboard.press("+")
    assert page.evaluate(size) > usual
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert page.evaluate(size) < usual
    page.keyboard.press("0")
    assert page.evaluate(size) == usual
    page.set_viewport_size({"width": 1920, "height": 1080})
    assert until(page, f"Math.abs({size} - 1.6 * 13) < 0.01")  # 1.6 times that of a notebook
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    page.keyboard.press("t")
    assert page.locator("html").get_attribute("theme") == "dark"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    page.keyboard.press("c")
    assert not page.locator("#controls").is_visible()
    page.keyboard.press("f")
    assert until(page, "document.fullscreenElement !== null")
    assert shown.changed_by(lambda: page.keyboard.press("PageDown"))
    assert shown.changed_by(lambda: page.keyboard.press("r"))
    assert "of caches beside" in page.locator("#sentence").inner_text()
    assert shown.wrong == []


def test_what_the_picture_shows_is_spoken(show: Callable[[str], Shown]) -> None:
    shown = show("follow-token")
    shown.page.keyboard.press("ArrowRight")
    assert until(shown.page, "document.getElementById('spoken').textContent.startsWith('E is')")
    label = shown.page.locator("#picture svg").get_attribute("aria-label")
    assert "E" in label and shown.page.locator("#spoken").get_attribute("aria-live") == "polite"


def test_space_plays_and_stops_a_live_race(show: Callable[[str], Shown]) -> None:
    shown = show("race")
    page = shown.page
    page.locator("#stages button").nth(1).click()
    page.wait_for_selector("#picture .kvlab-race")
    page.keyboard.press("Space")
    assert until(page, "document.body.dataset.busy === 'true'")
    assert until(page, "/tokens\\/s/.test(document.getElementById('picture').innerText)")
    page.keyboard.press("Space")
    assert until(page, IDLE)
    told = page.locator("#picture").inner_text()
    assert "stopped" in told or "The same text" in told
    assert shown.wrong == []


def test_with_reduced_motion_a_race_is_redrawn_no_more_than_once_a_second(
    show: Callable[[str], Shown],
) -> None:
    shown = show("race", reduced_motion="reduce")
    shown.page.locator("#stages button").nth(1).click()
    shown.page.wait_for_selector("#picture .kvlab-race")
    shown.page.evaluate(
        """() => { window.drawn = []; new MutationObserver(() => drawn.push(performance.now()))
        .observe(document.getElementById("picture"), {childList: true}); }"""
    )
    shown.page.keyboard.press("Space")
    over = "/The same text/.test(document.getElementById('picture').innerText)"
    assert until(shown.page, over, seconds=60)
    gaps = shown.page.evaluate("drawn.slice(1).map((t, i) => t - drawn[i])")
    assert shown.page.evaluate("drawn.length") >= 1
    assert all(gap > 700 for gap in gaps[:-1]), "the last picture may come at once"


def test_a_wrong_guess_is_one_line_and_a_stopped_server_is_told(
    show: Callable[[str], Shown],
) -> None:
    shown = show("memory-bar")
    guess = shown.page.locator('#controls [data-name="guess"]')
    guess.fill("many")
    guess.press("Enter")
    assert until(shown.page, "document.getElementById('error').textContent.includes('guess=')")
    error = shown.page.locator("#error").inner_text()
    assert error.count("\n") == 0 and 'must be a number such as "40 users"' in error
    shown.served.close()
    shown.served.close = lambda: None
    assert until(shown.page, "/has stopped/.test(document.getElementById('error').textContent)")

"""A page of the built site in Chromium: opened from the disk, with the network off."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 400, "height": 800}
SERIOUS = ("serious", "critical")
AXE = """async rules => {
  const only = rules.length ? {runOnly: {type: 'rule', values: rules}} : {};
  const found = await axe.run(document, {resultTypes: ['violations'], preload: false, ...only});
  return found.violations.flatMap(v => v.nodes.map(
    n => ({id: v.id, impact: n.impact || v.impact, where: n.html.slice(0, 160)})));
}"""

SPOT = """box => {  // where a point in the middle of the first line lies, else the middle
  const plot = box.querySelector('.plot'), drag = plot.querySelector('.nsewdrag');
  const at = drag.getBoundingClientRect(), row = (plot.calcdata || [])[0] || [];
  const point = row[Math.floor(row.length / 2)], {xaxis, yaxis} = plot._fullLayout;
  if (!point || !xaxis || typeof point.x !== 'number' || typeof point.y !== 'number')
    return [at.x + at.width / 2, at.y + at.height / 2];
  return [at.x + xaxis.c2p(point.x), at.y + yaxis.c2p(point.y)];
}"""
SHOWN = ".hoverlayer .hovertext, .hoverlayer .axistext"

UNREACHABLE = """() => [...document.querySelectorAll('main *')].filter(box => {
  const look = getComputedStyle(box), scrolls = v => v === 'auto' || v === 'scroll';
  const wide = box.scrollWidth > box.clientWidth + 1 && scrolls(look.overflowX);
  const inside = box.querySelector('a, button, input, select, summary, [tabindex]');
  return wide && box.clientWidth > 0 && box.tabIndex < 0 && !inside;
}).map(box => box.outerHTML.slice(0, 120))"""


@dataclass
class SitePage:
    """One tab; `problems` holds what must not be: errors, failed and outside requests."""

    page: Page
    folder: Path
    problems: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def opened(cls, browser: Browser, folder: Path, **options: Any) -> Iterator["SitePage"]:
        """Open an empty tab; `options` go to the browser's context."""
        context = browser.new_context(offline=True, **({"viewport": WIDE} | options))
        made = cls(context.new_page(), folder)
        made.page.on("console", made._note_console)
        made.page.on("pageerror", lambda error: made.problems.append(str(error)[:300]))
        made.page.on("request", made._note_request)
        made.page.on("requestfailed", made._note_failed)
        try:
            yield made
        finally:
            context.close()

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text[:300]}")

    def _note_failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # given up by the tab when it left the page
            self.problems.append(f"failed: {request.url[-120:]} ({request.failure})")

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:", "about:")):
            self.problems.append(f"asked the outside: {request.url[:200]}")

    def goto(self, address: str) -> Page:
        """Open a page of the site (`file.html#anchor`) and wait until its scripts have run."""
        file, _, anchor = address.partition("#")
        self.page.goto((self.folder / file).as_uri() + (f"#{anchor}" if anchor else ""))
        return self.page

    def sideways(self) -> int:
        """Return the pixels by which the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")

    def load_axe(self, axe: Path) -> None:
        """Put axe-core into the page that is open."""
        self.page.evaluate(axe.read_text(encoding="utf-8") + "\n; void 0")

    def accessibility(self, *rules: str) -> list[str]:
        """Return axe-core's serious findings on the whole page, of some rules or of all."""
        found = self.page.evaluate(AXE, rules)
        return [f"{f['id']}: {f['where']}" for f in found if f["impact"] in SERIOUS]

    def unreachable(self) -> list[str]:
        """Return what scrolls sideways inside itself and cannot be reached by the Tab key."""
        return self.page.evaluate(UNREACHABLE)

    def silent_charts(self) -> list[str]:
        """Return the charts of the page that say nothing where the mouse is over a point."""
        silent = []
        for number, chart in enumerate(self.page.query_selector_all(".chart"), 1):
            self.page.wait_for_function("box => box.querySelector('.nsewdrag')", arg=chart)
            chart.scroll_into_view_if_needed()
            x, y = chart.evaluate(SPOT)
            self.page.mouse.move(x - 5, y)
            self.page.mouse.move(x, y)
            self.page.wait_for_timeout(200)
            if not chart.query_selector(SHOWN):
                silent.append(f"chart {number} says nothing under the mouse")
        return silent

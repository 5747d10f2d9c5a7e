"""One notebook in a real browser: run it, move what moves, and collect what went wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lab_scripts as js
from lab_server import LabServer
from playwright.sync_api import ElementHandle, Page

RUN_SECONDS = 240
SETTLE_MS = 1500
SERIOUS = ("serious", "critical")
NOT_OURS = (("aria-input-field-name", "noUi-handle"),)
"""What ipywidgets itself leaves out, and Python cannot add: its slider handles carry no name."""


@dataclass(frozen=True)
class Moved:
    """What happened after one control was worked by keyboard."""

    control: str
    cell: int
    changed: bool
    milliseconds: float | None


@dataclass
class LabPage:
    """A notebook opened in JupyterLab, and what was seen while it was open."""

    page: Page
    lab: LabServer
    console: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.console.append(str(error)[:300]))
        self.page.on("request", self._note_request)

    def _note_console(self, message) -> None:  # type: ignore[no-untyped-def]
        if message.type == "error":
            self.console.append(f"{message.text[:300]} ({message.location.get('url', '')[-80:]})")

    def _note_request(self, request) -> None:  # type: ignore[no-untyped-def]
        inside = (self.lab.base, self.lab.base.replace("http", "ws"), "data:", "blob:", "about:")
        if not request.url.startswith(inside):
            self.left.append(request.url[:200])

    def open(self, notebook: str, theme: str = "Light") -> None:
        """Open a notebook and wait for its kernel."""
        self.lab.set_theme(theme)
        self.page.goto(self.lab.address(notebook))
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        self.page.wait_for_function(js.READY, timeout=90_000)
        self.command("application:toggle-left-area")

    def command(self, name: str) -> None:
        """Run one of JupyterLab's commands."""
        self.page.evaluate("name => void window.jupyterapp.commands.execute(name)", name)

    def run_all(self) -> None:
        """Run every cell and wait until the kernel has nothing left to do."""
        self.command("notebook:run-all-cells")
        self.page.wait_for_timeout(1000)
        self.settle()

    def settle(self) -> None:
        """Wait until the kernel is idle and no cell is running."""
        self.page.wait_for_function(js.IDLE, timeout=RUN_SECONDS * 1000)
        self.page.wait_for_timeout(300)

    def problems(self) -> list[str]:
        """Return all that must not be: error and stderr outputs, console errors, outside calls."""
        found = [f"output: {text}" for text in self.page.evaluate(js.ERRORS)]
        found += [f"cell not run: {text}" for text in self.page.evaluate(js.LEFT_OVER)]
        found += [f"console: {text}" for text in self.console]
        return found + [f"asked the outside: {url}" for url in self.left]

    def controls(self, kind: str) -> list[ElementHandle]:
        """Return the visible controls of one kind: "slider", "button", "field" or "any"."""
        return [c for c in self.page.query_selector_all(js.CONTROLS[kind]) if c.is_visible()]

    def work(self, control: ElementHandle, *attempts: Sequence[str]) -> Moved:
        """Work a control with the keyboard; tell whether its cell shows something new.

        An attempt is a row of keys; the next one is made only when nothing changed.
        """
        name, cell = control.evaluate(js.NAME)
        control.scroll_into_view_if_needed()
        for keys in attempts:
            control.focus()
            control.evaluate(js.WATCH)
            for key in keys:
                self.page.keyboard.press(key)
            self.page.wait_for_timeout(100)
            self.page.wait_for_function(js.IDLE, timeout=RUN_SECONDS * 1000)
            changed, milliseconds = self._result()
            if changed:
                return Moved(name, cell, True, milliseconds)
        return Moved(name, cell, False, None)

    def _result(self) -> tuple[bool, float | None]:
        for _ in range(SETTLE_MS // 100):
            changed, milliseconds = self.page.evaluate(js.RESULT)
            if changed:
                return True, milliseconds
            self.page.wait_for_timeout(100)
        return False, None

    def move_sliders(self) -> list[Moved]:
        """Move each slider one step; back instead, where it stands at its end."""
        return [self.work(s, ["ArrowRight"], ["ArrowLeft"]) for s in self.controls("slider")]

    def fill_fields(self, text: str = "12") -> list[Moved]:
        """Type an answer into each text field, as a learner who guesses does."""
        fields = [f for f in self.controls("field") if f.is_enabled()]
        return [self.work(f, [*text, "Enter"]) for f in fields]

    def press_buttons(self) -> list[Moved]:
        """Press each button that can be pressed."""
        return [self.work(b, ["Enter"]) for b in self.controls("button") if b.is_enabled()]

    def unreachable(self) -> list[str]:
        """Return the controls that the Tab key does not reach, walking on from the first one."""
        controls = [c for c in self.controls("any") if c.is_enabled()]
        if not controls:
            return []
        for number, control in enumerate(controls):
            control.evaluate("(e, n) => { e.dataset.kvlabTab = n; }", str(number))
        controls[0].focus()
        reached = {self.page.evaluate(js.ACTIVE)}
        for _ in range(20 * len(controls)):
            self.page.keyboard.press("Tab")
            reached.add(self.page.evaluate(js.ACTIVE))
        missing = set(map(str, range(len(controls)))) - reached
        return [controls[int(i)].evaluate("e => e.outerHTML.slice(0, 120)") for i in missing]

    def accessibility(self, axe: Path) -> list[str]:
        """Return axe-core's serious findings within the course's own parts."""
        self.page.evaluate(axe.read_text(encoding="utf-8") + "\n; void 0")
        found = self.page.evaluate(js.AXE)
        ours = [f for f in found if not any(f["id"] == i and p in f["where"] for i, p in NOT_OURS)]
        return [f"{f['id']}: {f['where']}" for f in ours if f["impact"] in SERIOUS]

    def shots(self, folder: Path, name: str) -> list[Path]:
        """Save the notebook, screen by screen; return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number in range(40):
            at_end = self.page.evaluate(js.SHOT_STEP, number)
            self.page.wait_for_timeout(300)
            files.append(folder / f"{name}-{number:02}.png")
            self.page.screenshot(path=files[-1])
            if at_end:
                break
        return files

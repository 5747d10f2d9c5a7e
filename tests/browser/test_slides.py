"""The talks in Chromium at 1280 x 720, from the disk: nothing overflows, nothing is fetched."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from built_chapters import built_sources
from playwright.sync_api import Browser, Page
from slides_build import main
from slides_page import page_html
from slides_pick import Slide

MEASURE = """() => slides.flatMap((slide, index) => {
  show(index);
  const parts = [slide, ...slide.querySelectorAll("h2,.lead,.body,.caption,.fit")];
  const over = parts.filter((part) => part.scrollHeight > part.clientHeight + 1
    || part.scrollWidth > part.clientWidth + 1).map((part) => `${index + 1}: ${part.className}`);
  const small = [...slide.querySelectorAll(".fit > *")].filter((part) => {
    const box = part.viewBox && part.viewBox.baseVal;
    const scale = box ? Math.min(part.clientWidth / box.width, part.clientHeight / box.height)
      : Number(part.style.zoom);
    return scale < 0.8;
  }).map(() => `${index + 1}: too small to read`);
  return [...over, ...small];
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("slides")
    assert main(["--out", str(out)]) == 0
    return out


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
    page.fetched, page.faults = [], []  # type: ignore[attr-defined]
    page.on("request", lambda request: page.fetched.append(request.url))  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.faults.append(str(error)))  # type: ignore[attr-defined]
    page.on("console", lambda said: page.faults.append(said.text))  # type: ignore[attr-defined]
    yield page
    page.close()


@pytest.mark.parametrize("source", built_sources(), ids=lambda s: s.stem[:2])
def test_every_slide_of_a_talk_fits(source: Path, folder: Path, page: Page) -> None:
    address = (folder / f"{source.stem[:2]}.html").as_uri()
    page.goto(address)
    assert page.evaluate(MEASURE) == []
    assert page.fetched == [address] and page.faults == []  # type: ignore[attr-defined]


def test_a_slide_that_is_too_full_is_found(tmp_path: Path, page: Page) -> None:
    full = Slide("words", "Too much", lead="word " * 600)
    path = tmp_path / "full.html"
    path.write_text(page_html([full], "full"), encoding="utf-8")
    page.goto(path.as_uri())
    assert page.evaluate(MEASURE)


def test_keys_turn_slides_and_nothing_else_is_needed(folder: Path, page: Page) -> None:
    page.goto((folder / "03.html").as_uri())
    where = page.locator("#where")
    count = int(where.inner_text().split("/")[1])
    for key, place in (("ArrowRight", 2), ("PageDown", 3), ("ArrowLeft", 2), ("End", count),
                       ("ArrowRight", count), ("Home", 1), ("ArrowLeft", 1)):  # fmt: skip
        page.keyboard.press(key)
        assert where.inner_text() == f"{place} / {count}"
        assert page.locator(".slide:visible").count() == 1
    page.get_by_role("button", name="next slide").click()
    assert page.url.endswith("#2")


def test_d_changes_light_and_dark_and_n_shows_the_notes(folder: Path, page: Page) -> None:
    page.goto((folder / "03.html").as_uri() + "#3")
    ground = "getComputedStyle(document.querySelector('.slide.here')).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.keyboard.press("d")
    assert page.evaluate(ground) == "rgb(26, 26, 26)"
    ink = "getComputedStyle(document.querySelector('.slide.here svg text')).fill"
    assert page.evaluate(ink) == "rgb(236, 236, 236)"
    assert not page.locator("#notes").is_visible()
    page.keyboard.press("n")
    assert "180 vectors" in page.locator("#notes").inner_text()


def test_the_speakers_window_follows_the_room_and_leads_it(folder: Path, page: Page) -> None:
    page.goto((folder / "03.html").as_uri() + "#2")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    speaker = opened.value
    speaker.wait_for_function("here === 1")
    page.keyboard.press("ArrowRight")
    speaker.wait_for_function("here === 2")
    speaker.keyboard.press("ArrowRight")
    page.wait_for_function("here === 3")
    assert "Next:" in speaker.locator("#notes").inner_text()
    speaker.close()


def test_printing_gives_a_page_for_each_slide(folder: Path, page: Page) -> None:
    page.goto((folder / "01.html").as_uri())
    count = int(page.locator("#where").inner_text().split("/")[1])
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") == count

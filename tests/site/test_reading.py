"""What a reader does on the site: search, switch the theme, copy, print, use the keys."""

import pytest
from playwright.sync_api import Browser, Page
from site_page import SitePage

CHAPTER = "03_memory_formula.html"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def find(page: Page, words: str) -> list[str]:
    """Search for words and return the addresses found, best first."""
    page.keyboard.press("/")
    page.locator("#search-words").fill(words)
    page.wait_for_function("document.querySelector('#search .told').textContent !== ''")
    return [link.get_attribute("href") for link in page.locator("#search .found a").all()]


def test_the_search_finds_a_section_by_its_words_and_goes_there(tab: SitePage) -> None:
    page = tab.goto("index.html")
    found = find(page, "block table")
    assert any(address.startswith("06_paged_allocation.html#") for address in found[:5])
    assert page.locator("#search mark").count() > 0
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('href')") == found[0]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{found[0]}")
    assert tab.problems == []


def test_the_search_finds_questions_and_says_when_there_is_nothing(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    assert find(page, "zzyzx") == []
    assert page.locator("#search .told").inner_text() == "Nothing found."
    page.locator("#search-words").fill("")
    assert any("#q-" in address for address in find(page, "positions does the cache hold"))
    page.keyboard.press("Escape")
    assert not page.locator("#search").is_visible()


def test_the_theme_follows_the_system_until_it_is_switched_and_is_kept(tab: SitePage) -> None:
    page = tab.goto("index.html")
    light = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(BACKGROUND)
    assert light != dark
    page.get_by_role("button", name="Switch to the light theme").click()
    assert page.evaluate(BACKGROUND) == light
    tab.goto(CHAPTER)
    assert page.evaluate(BACKGROUND) == light
    ink = "getComputedStyle(document.querySelector('svg.kvlab text')).fill"
    on_light = page.evaluate(ink)
    page.get_by_role("button", name="Switch to the dark theme").click()
    assert page.evaluate(ink) != on_light, "the pictures follow the switch"


def test_the_page_works_where_the_browser_keeps_nothing(browser: Browser, built) -> None:
    with SitePage.opened(browser, built) as tab:
        tab.page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})"
        )
        page = tab.goto(CHAPTER)
        page.get_by_role("button", name="Switch to the dark theme").click()
        page.locator(".guess input").first.fill("3")
        page.locator(".guess button").first.click()
        assert tab.problems == []


def test_the_page_can_be_read_without_scripts(browser: Browser, built) -> None:
    with SitePage.opened(browser, built, java_script_enabled=False) as tab:
        page = tab.goto("06_paged_allocation.html")
        assert page.locator(".player .stage svg").is_visible()
        assert not page.locator(".player .controls").is_visible()
        question = page.locator(".question").first
        assert not question.locator("form").is_visible()
        question.locator("summary").click()
        assert question.locator(".js-solution").is_visible()
        page = tab.goto(CHAPTER)
        assert page.locator(".memory .stage svg").is_visible()


def test_the_skip_link_comes_first_and_focus_is_seen(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    assert skip.evaluate("e => e === document.activeElement") and skip.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.locator(".js-theme").focus()
    assert page.locator(".js-theme").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"


def test_chapters_that_were_opened_are_marked_in_the_row(tab: SitePage) -> None:
    tab.goto("02_recompute_or_remember.html")
    page = tab.goto(CHAPTER)
    cells = page.locator(".cells a")
    read = [c.get_attribute("data-number") for c in cells.all() if "opened before" in name_of(c)]
    assert read == ["02"]
    assert page.locator(".cells [aria-current=page]").inner_text() == "03"


def name_of(cell) -> str:
    return cell.get_attribute("aria-label") or ""


def test_code_is_copied_as_it_stands(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator(".cell-block > .code").first
    block.hover()
    block.locator(".copy").click()
    page.wait_for_function(
        "[...document.querySelectorAll('.copy')].some(b => b.innerText === 'copied')"
    )
    assert page.evaluate("navigator.clipboard.readText()") == block.locator("pre").inner_text()


def test_paper_shows_text_and_pictures_and_no_controls(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    page.emulate_media(media="print", color_scheme="dark")
    for hidden in (".top", ".contents", ".turn", ".guess form", ".memory .factors"):
        assert not page.locator(hidden).first.is_visible(), hidden
    assert page.locator(".pic svg").first.is_visible()
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"


def test_nothing_moves_where_the_reader_wants_no_motion(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    smooth = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.evaluate(smooth) == "smooth"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(smooth) == "auto"


@pytest.mark.parametrize("file", ["03_memory_formula.html", "questions-gqa.html"])
def test_a_link_to_a_place_on_a_page_shows_it_below_the_header(tab: SitePage, file: str) -> None:
    page = tab.goto(file)
    last = page.locator("main [id]:is(h2, section)").last
    name = last.get_attribute("id")
    page = tab.goto(f"{file}#{name}")
    page.wait_for_timeout(100)
    top = page.locator(f"#{name}").bounding_box()["y"]
    bottom = page.locator(".top").bounding_box()
    assert top >= bottom["y"] + bottom["height"] - 1


def test_the_short_way_hides_deep_dives_until_a_link_leads_into_one(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    deep = page.locator("main h2#other-layers")
    core = page.locator("main h2#bytes-per-token")
    button = page.get_by_role("button", name="Core sections only")
    button.click()
    assert not deep.is_visible() and core.is_visible() and page.locator(".turn").is_visible()
    tab.goto("04_prefill_and_decode.html")
    assert page.locator(".js-core").get_attribute("aria-pressed") == "true"
    tab.goto(f"{CHAPTER}#other-layers")
    assert deep.is_visible()
    assert tab.problems == []

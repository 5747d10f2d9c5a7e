"""What a reader answers on the site: guesses, questions of every kind, claims, the diagnostic."""

import json

from playwright.sync_api import Page
from site_page import SitePage

from kvlab.course.bank import find_question
from kvlab.course.chapters_map import find_chapter
from kvlab.course.diagnostic import ASKED_ABOUT, advise, draw_diagnostic
from tools.site.question_pages import DIAGNOSTIC_SEED

CHAPTER = "03_memory_formula.html"


def test_a_guess_stands_beside_the_value_and_is_there_again(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    box = page.locator(".guess").first
    key = box.get_attribute("data-key")
    box.locator("input").fill("many")
    box.locator("button").click()
    assert "could not be compared" in box.locator(".told").inner_text()
    box.locator("input").fill("64")
    page.keyboard.press("Enter")
    card = page.locator(f".reveal[data-key='{key}']")
    assert card.locator(".js-guess").inner_text() == f"64 {box.get_attribute('data-unit')}".strip()
    assert "too low" in card.locator(".js-far").inner_text()
    page.reload()
    assert page.locator(f".reveal[data-key='{key}'] .js-guess").inner_text().startswith("64")


def question(page: Page, kind: str):
    return page.locator(f".question[data-kind={kind}]").first


def data_of(block) -> dict:
    return json.loads(block.locator("script[type='application/json']").text_content())


def test_a_number_is_graded_and_asked_again_with_others(tab: SitePage) -> None:
    page = tab.goto("questions-memory.html")
    block = question(page, "numeric")
    first, data = block.locator(".js-text").inner_text(), data_of(block)
    block.locator("input").fill("1")
    page.keyboard.press("Enter")
    assert "Not yet" in block.locator(".feedback").inner_text()
    target = data["askings"][0]["target"]
    block.locator("input").fill(f"{target['value']} {target['unit']}")
    block.get_by_role("button", name="check").click()
    assert "Right" in block.locator(".feedback").inner_text()
    block.get_by_role("button", name="fresh numbers").click()
    assert block.locator(".js-text").inner_text() != first
    assert block.locator(".feedback").inner_text() == ""
    block.locator("input").fill("")
    block.get_by_role("button", name="check").click()
    assert "Not answered yet" in block.locator(".feedback").inner_text()


def test_every_option_has_its_reason(tab: SitePage) -> None:
    page = tab.goto("questions-memory.html")
    block = question(page, "choice")
    for place, (right, why) in enumerate(data_of(block)["askings"][0]["options"]):
        block.locator("input[type=radio]").nth(place).check()
        block.get_by_role("button", name="check").click()
        said = block.locator(".feedback").inner_text()
        assert why in said and ("\u2713" in said) is right


def test_steps_are_brought_into_order_with_the_keyboard(tab: SitePage) -> None:
    page = tab.goto("questions-memory.html")
    block = question(page, "order")
    order = data_of(block)["askings"][0]["order"]
    block.get_by_role("button", name="check").click()
    assert "comes too early" in block.locator(".feedback").inner_text()
    for position in range(len(order)):
        shown = block.locator(".steps li").evaluate_all("rows => rows.map(r => +r.dataset.place)")
        at = next(i for i, place in enumerate(shown) if order[place] == position)
        for _ in range(at - position):
            block.locator(".steps li").nth(at).locator(".js-up").focus()
            page.keyboard.press("Enter")
            at -= 1
    block.get_by_role("button", name="check").click()
    assert "Right" in block.locator(".feedback").inner_text()


def test_an_open_question_is_marked_by_its_points_and_never_without_the_scope(tab) -> None:
    page = tab.goto("questions-memory.html")
    block = question(page, "open")
    points = find_question(block.get_attribute("data-id")).rubric
    block.locator("summary").click()
    ticks = block.locator(".rubric input")
    for place in range(1, len(points)):
        ticks.nth(place).check()
    assert "scope" in block.locator(".feedback").inner_text()
    ticks.nth(0).check()
    assert block.locator(".feedback").inner_text() == f"{len(points)} of {len(points)} points."


def test_the_diagnostic_says_what_the_course_would_say(tab: SitePage) -> None:
    page = tab.goto("diagnostic.html")
    asked = draw_diagnostic(DIAGNOSTIC_SEED)
    right = {}
    for place, one in enumerate(asked):
        block = page.locator(f"#q-{one.question.id}")
        right[one.question.chapter] = place % 2 == 0
        if place % 2 == 0 and "target" in (asking := data_of(block)["askings"][0]):
            block.locator("input").fill(f"{asking['target']['value']} {asking['target']['unit']}")
            block.get_by_role("button", name="check").click()
        elif place % 2 == 0 and "options" in asking:
            good = next(i for i, (is_right, _) in enumerate(asking["options"]) if is_right)
            block.locator("input[type=radio]").nth(good).check()
            block.get_by_role("button", name="check").click()
        else:  # a look at the answer is a no
            right[one.question.chapter] = False
            block.locator("details.js-shows summary").click()
    rows = page.locator(".advice tbody tr")
    said = {number: rows.nth(i).locator(".js-advice").inner_text()
            for i, number in enumerate(ASKED_ABOUT)}  # fmt: skip
    advice = advise(right)
    assert {n for n, word in said.items() if word == "skim"} == set(advice.skim)
    assert {n for n, word in said.items() if word == "read"} == set(advice.read)
    assert f"{advice.minutes} minutes core." in page.locator(".js-total").inner_text()
    assert find_chapter(ASKED_ABOUT[0]).title in rows.nth(0).inner_text()


def test_a_verdict_on_a_claim_opens_the_recomputation(tab: SitePage) -> None:
    page = tab.goto(CHAPTER)
    card = page.locator(".claim").first
    verdict = card.get_attribute("data-verdict")
    other = "wrong" if verdict != "wrong" else "holds"
    card.get_by_role("button", name=other, exact=True).click()
    assert "otherwise" in card.locator(".told").inner_text()
    assert card.locator("details").get_attribute("open") is not None
    card.get_by_role("button", name=verdict, exact=True).click()
    assert "says so too" in card.locator(".told").inner_text()
    assert f"Verdict: {verdict}." in card.locator("details").inner_text()
    assert tab.problems == []

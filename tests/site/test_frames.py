"""Frames come back as they were drawn, and the player shows them in the page, step by step."""

import json

import pytest
from site_page import SitePage

from kvlab.widgets.allocation_race import STREAMS, race_frame
from kvlab.widgets.follow_token import follow_token
from kvlab.widgets.recompute_or_remember import recompute_or_remember
from tools.site.live_frames import OWN, packed, pieces, unpacked

RACE = recompute_or_remember()
TOY = follow_token()
LENGTHS = list(STREAMS)[2]
ROWS = {
    "race": [RACE.draw(step=i).picture for i in range(8)],
    "follow": [TOY.draw(step=i, heads=2).picture for i in range(8)],
    "blocks": [race_frame(LENGTHS, "max", 16, step).picture for step in range(0, 120, 7)],
}
LABELS = """async ([name, steps]) => {
  const box = document.querySelector(`.player[data-name=${name}]`), seen = [];
  const slider = box.querySelector('input[type=range]');
  for (const step of steps) {
    slider.value = step;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    const shown = box.querySelector('.stage svg');
    seen.push([shown.getAttribute('aria-label'), box.querySelector('.event').textContent]);
  }
  return seen;
}"""


@pytest.mark.parametrize("name", ROWS)
def test_packed_frames_come_back_piece_by_piece(name: str) -> None:
    drawn = ROWS[name]
    back = unpacked(json.loads(json.dumps(packed(drawn))))
    assert back == ["".join(pieces(picture)) for picture in drawn]


def test_pieces_lose_nothing_but_the_style_and_the_name_of_a_picture() -> None:
    picture = ROWS["race"][3]
    style = picture[picture.index("<style>") : picture.index("</style>") + len("</style>")]
    whole = "".join(pieces(picture))
    assert OWN in whole
    assert len(whole) < len(picture) - len(style)
    assert whole.split(f"-{OWN}")[0] == picture.replace(style, "").split("-kv")[0]


@pytest.mark.parametrize(
    ("file", "name", "draw"),
    [
        ("02_recompute_or_remember.html", "race", lambda step: RACE.draw(step=step)),
        ("01_follow_one_token.html", "follow", lambda step: TOY.draw(step=step, heads=1)),
        (
            "06_paged_allocation.html",
            "blocks",
            lambda step: race_frame(next(iter(STREAMS)), "max", 16, step),
        ),
    ],
)
def test_the_player_shows_what_the_course_draws(tab: SitePage, file, name, draw) -> None:
    page = tab.goto(file)
    page.wait_for_function(f"document.querySelector('.player[data-name={name}] .js-back').disabled"
                           " !== undefined && Object.keys(kvlab.frames).length > 0")  # fmt: skip
    steps = [0, 1, 5, 7, 3]
    frames = [draw(step) for step in steps]
    assert page.evaluate(LABELS, [name, steps]) == [[f.picture.label, f.event] for f in frames]
    assert tab.problems == []


def test_the_player_is_worked_by_the_keyboard(tab: SitePage) -> None:
    page = tab.goto("02_recompute_or_remember.html")
    event, slider = page.locator(".player .event"), page.locator(".player input[type=range]")
    first = event.inner_text()
    page.locator(".player .js-forward").focus()
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == "4" and event.inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert event.inner_text() == first
    slider.focus()
    page.keyboard.press("End")
    assert page.locator(".player .js-forward").is_disabled()
    page.locator(".player .js-play").focus()
    page.keyboard.press("Enter")  # at the end it plays from the start
    assert slider.input_value() == "0"
    page.wait_for_function("document.querySelector('.player input[type=range]').value > 0")
    page.keyboard.press("Enter")
    assert "play" in page.locator(".player .js-play").inner_text()


def test_another_stream_is_loaded_when_it_is_chosen(tab: SitePage) -> None:
    page = tab.goto("06_paged_allocation.html")
    page.locator(".player select").select_option(label=LENGTHS)
    page.wait_for_function("document.querySelector('.player input[type=range]').max < 200")
    seen = page.evaluate(LABELS, ["blocks", [40]])
    frame = race_frame(LENGTHS, "max", 16, 40)
    assert seen == [[frame.picture.label, frame.event]]
    page.get_by_role("button", name="to the first refusal").click()
    assert "refuses" in page.locator(".player .stage svg").get_attribute("aria-label")
    assert tab.problems == []

"""Boxes of words: escaped, told in words and signs, one meaning a colour."""

import xml.etree.ElementTree as ET

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures import cards, race, tables
from kvlab.figures.palette import ROLES


@pytest.mark.parametrize("kind", cards.FEEDBACK)
def test_feedback_says_its_kind_in_words_and_borrows_no_colour(kind):
    box = cards.feedback(kind, "The factor 2 is for K and V.")
    assert cards.FEEDBACK[kind].strip("\u2713\u2717\u25cb ") in box.label
    assert not any(color.lower() in box.lower() for color in ROLES.values())


def test_words_from_outside_are_shown_and_never_run():
    evil = '<img src=x onerror="alert(1)">'
    boxes = [
        cards.feedback("wrong", evil, heading=evil),
        cards.readout({evil: evil}, title=evil),
        cards.prediction(evil, guess=evil, value=evil, remark=evil),
        cards.claim(evil, source=evil, verdict="wrong", computed={evil: evil}, condition=evil),
        cards.checklist([(evil, evil, False, evil)], title=evil),
        tables.table([evil], [[evil]], caption=evil),
        race.race([race.Lane(evil, text=evil, max_new_tokens=2)], prompt=evil, verdict=evil),
        cards.progress(1, 2, doing=evil),
    ]
    for box in boxes:
        assert "<img" not in box
        ET.fromstring(box)


def test_a_prediction_works_without_a_guess_and_before_the_look():
    assert "none made" in cards.prediction("How many?", value="3")
    assert "not shown yet" in cards.prediction("How many?", guess="4 GiB")


def test_a_claim_asks_before_it_tells():
    asked = cards.claim("MQA gives 92 sessions.", source="a page")
    assert "Your verdict" in asked
    told = cards.claim("MQA gives 92 sessions.", source="a page", verdict="only if")
    assert "only if" in told.label


def test_an_unknown_kind_or_verdict_is_refused_by_name():
    with pytest.raises(InvalidArgument, match="kind='great'"):
        cards.feedback("great", "")
    with pytest.raises(InvalidArgument, match="verdict='true'"):
        cards.claim("a", source="b", verdict="true")


def test_a_table_has_a_caption_and_header_cells_for_readers():
    root = ET.fromstring(tables.table(["a", "b"], [["x", "1"]], caption="Sizes", numeric=[1]))
    assert root.find(".//caption").text == "Sizes"
    assert [cell.get("scope") for cell in root.findall(".//th")] == ["col", "col", "row"]
    with pytest.raises(InvalidArgument, match="2 cells"):
        tables.table(["a", "b"], [["x"]])


def test_a_lane_before_its_first_token_has_no_speed():
    lane = race.Lane("cached", max_new_tokens=8)
    assert lane.tokens_per_second is None
    assert "\u2013" in race.race([lane])


def test_backticks_mark_code_and_a_lone_one_stays():
    assert "<code>n</code>" in cards.paragraphs("use `n` here")
    assert "`" in cards.paragraphs("a lone ` here")

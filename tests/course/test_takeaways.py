"""The sheet of takeaways: three a chapter, worked out anew, and in agreement with the chapters."""

import json
import re

import pytest

from kvlab.course.chapters_map import CHAPTERS
from kvlab.course.takeaways import load_takeaways
from kvlab.errors import InvalidArgument
from kvlab.figures.takeaway_sheet import save_sheet, takeaway_sheet


def test_every_chapter_that_teaches_has_three():
    counted = [takeaway.chapter for takeaway in load_takeaways()]
    taught = [chapter.number for chapter in CHAPTERS if not chapter.optional][:-1]
    assert counted == [number for number in taught for _ in range(3)]


def test_no_result_is_written_down_in_the_data():
    """A number in the words must be a given, so none may be the text of a computed value."""
    for takeaway in load_takeaways():
        given = set(re.findall(r"[\d,.]+\d", re.sub(r"{[^}]*}", "", takeaway.words)))
        filled = set(re.findall(r"[\d,.]+\d|\d", takeaway.computed))
        assert filled, takeaway.id
        blank = re.sub(r"{[^}]*}", "", takeaway.words)
        assert takeaway.computed != blank, (takeaway.id, given)


@pytest.mark.parametrize(
    ("takeaway_id", "expected"),
    [
        ("02-1", "2,999 instead of 2,499,500"),
        ("03-1", "327,680 bytes"),
        ("04-2", "122,532"),
        ("05-3", "92 sessions pooled, 11 by rank"),
        ("06-1", "97.4 %"),
        ("07-3", "78.5 %"),
        ("08-1", "3.56x"),
        ("09-2", "10.1x"),
        ("10-3", "52x"),
    ],
)
def test_the_numbers_are_those_of_the_chapters(takeaway_id, expected):
    found = {takeaway.id: takeaway.computed for takeaway in load_takeaways()}
    assert expected in found[takeaway_id]


def test_the_sheet_shows_all_and_is_saved_as_a_page_that_needs_nothing_else(tmp_path):
    sheet = takeaway_sheet()
    assert sheet.count("<section>") == len({t.chapter for t in load_takeaways()})
    page = save_sheet(tmp_path / "takeaways.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and str(sheet) in page
    assert "http" not in page and "<script" not in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": {}}, "must name one value"),
        ({"values": {"x": {"function": "os.system"}}}, "is not a listed function"),
        ({"words": "no value"}, "must use the value x"),
        ({"chapter": "99"}, "must be one of"),
        ({"extra": 1}, "is not a field"),
    ],
)
def test_a_faulty_row_is_named(tmp_path, change, message):
    row = {"id": "a", "chapter": "03", "rule": "r", "words": "{x}", "values": {"x": 1}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"takeaways": [row | change]}), encoding="utf-8")
    with pytest.raises(InvalidArgument, match=message):
        load_takeaways(path)

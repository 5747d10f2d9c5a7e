"""What holds for every picture of the gallery."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations

from kvlab.figures.palette import contrast
from kvlab.figures.svg import MAX_WIDTH, Picture


def test_it_is_well_formed_and_tells_its_state_in_a_sentence(example):
    picture = example()
    root = ET.fromstring(str(picture))
    assert isinstance(picture, Picture)
    assert root.get("aria-label") == picture.label
    assert len(picture.label) > 8
    if root.tag.endswith("svg"):
        assert root.get("role") == "img"


def test_the_same_results_give_the_same_bytes(example):
    assert str(example()) == str(example())


def test_ids_are_its_own_and_every_reference_is_met(example):
    markup = str(example())
    ids = re.findall(r'\bid="([^"]+)"', markup)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", markup)) <= set(ids)
    assert "UID" not in markup
    assert all(re.search(r"kv[0-9a-f]{10}$", name) for name in ids)


def test_it_asks_nothing_of_the_network_and_runs_no_script(example):
    markup = str(example()).replace("http://www.w3.org/2000/svg", "")
    assert "http" not in markup
    assert "<script" not in markup
    assert "animation" not in markup


def test_it_fits_the_widest_place_of_a_widget(drawing):
    assert drawing.width <= MAX_WIDTH


def test_every_text_is_inside_the_picture(drawing):
    for text in drawing.texts():
        assert text.left >= 0, text
        assert text.right <= drawing.width + 0.5, text
        assert text.top >= 0, text
        assert text.bottom <= drawing.height, text


def test_no_two_texts_touch(drawing):
    for one, other in combinations(drawing.texts(), 2):
        across, down = one.overlap(other)
        assert across <= 0.5 or down <= 0.5, (one, other)


def test_no_two_cells_overlap(drawing):
    for one, other in combinations(drawing.cells(), 2):
        across, down = one.overlap(other)
        assert across <= 0.1 or down <= 0.1, (one, other)


def test_a_text_on_a_colour_reads_at_4_5_to_1(drawing):
    coloured = [text for text in drawing.texts() if "fill:" in text.fill]
    for text in coloured:
        ink = text.fill.removeprefix("fill:")
        x, y = (text.left + text.right) / 2, text.bottom - 2
        below = [c.fill for c in drawing.cells() if c.holds(x, y) and c.fill.startswith("#")]
        for ground in below:
            assert contrast(ink, ground) >= 4.5, (text, ground)


def test_a_cell_that_has_a_text_is_wide_enough_for_it(drawing):
    for cell in drawing.cells():
        for text in drawing.texts():
            middle = (text.left + text.right) / 2, (text.top + text.bottom) / 2
            if cell.holds(*middle):
                assert text.left >= cell.left - 0.5, (text, cell)
                assert text.right <= cell.right + 0.5, (text, cell)

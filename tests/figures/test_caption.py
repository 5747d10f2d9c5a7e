"""A picture with its caption: one drawing, no word lost, ids and scale kept."""

import re

import pytest

from kvlab.figures.blocks import Block, block_map
from kvlab.figures.caption import captioned
from kvlab.figures.svg import Picture

from .conftest import Drawing

NUMBERS = {f"a quantity with a long name {i}": f"{10**i:,} bytes" for i in range(7)}


@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_every_word_and_number_is_below_the_picture_and_none_collide(scale):
    drawn = block_map([Block(0, (0,), 3)], block_size=16, scale=scale)
    drawing = Drawing(captioned(drawn, "block 0 goes to A; reference count 1", NUMBERS))
    texts = drawing.texts()
    assert {*NUMBERS, *NUMBERS.values()} <= {text.name for text in texts}
    for index, one in enumerate(texts):
        assert one.right <= drawing.width
        assert one.bottom <= drawing.height
        for other in texts[index + 1 :]:
            across, down = one.overlap(other)
            assert across <= 0.5 or down <= 0.5, (one, other)
    assert float(drawing.root.get("width")) == pytest.approx(960 * scale)


def test_a_hatch_is_still_found_inside_the_larger_drawing():
    made = captioned(block_map([Block(0, (0,), 3)], block_size=16), "an event")
    assert set(re.findall(r"url[(]#([^)]+)[)]", made)) == set(re.findall(r' id="([^"]+)"', made))


def test_what_has_no_caption_or_is_html_stays_as_it_is():
    drawn = block_map([Block(0)], block_size=16)
    assert captioned(drawn) is drawn
    words = Picture("<div/>", label="words")
    assert captioned(words, "an event") is words

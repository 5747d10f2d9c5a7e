"""Maps of what survives, of shares by head, and of what one token reaches."""

from itertools import combinations

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.head_shares import MOST_LAYERS, head_shares
from kvlab.figures.palette import color_of
from kvlab.figures.reach_map import reach_map
from kvlab.figures.survivors import Fact, Strip, runs, survivors

from .conftest import Drawing

FACTS = [Fact(2, 2, True), Fact(3, 2, False), Fact(200, 2, True), Fact(398, 2, False)]
STRIPS = [
    Strip("layer 1, KV head 1", [0, 1, 2, 3, 200, 399]),
    Strip("layer 2, KV head 12 of a long name", list(range(300, 400))),
    Strip("layer 3, nothing", []),
]
REACH = [[0.0] * 4, [0.0, 0.9, 0.004, 0.0], [0.0, 1.7, 0.2, 1e-9]]


def check_texts(drawing: Drawing) -> None:
    for text in drawing.texts():
        assert text.left >= 0 and text.right <= drawing.width + 0.5, text
        assert text.top >= 0 and text.bottom <= drawing.height, text
    for one, other in combinations(drawing.texts(), 2):
        across, down = one.overlap(other)
        assert across <= 0.5 or down <= 0.5, (one, other)


@pytest.mark.parametrize("length", [400, 1000, 4096])
def test_the_map_of_survivors_says_how_many_and_keeps_its_words_apart(length: int) -> None:
    picture = survivors(STRIPS, FACTS, length=length, title="t", reading="r " * 80)
    check_texts(Drawing(picture))
    assert "2 of 4 facts answered" in picture.label
    assert "layer 1, KV head 1 holds 6" in picture.label and "nothing holds 0" in picture.label
    assert picture.count("url(#wasted") == 2  # a lost fact is hatched, so colour is not needed


def test_a_strip_draws_each_position_where_it_stands_and_facts_in_full_colour() -> None:
    picture = survivors([Strip("one", [0, 1, 2, 3, 9])], [Fact(2, 2, True)], length=10, width=410)
    left, pitch = 18 + 150, (410 - 18 - 74 - 18 - 150) / 10
    fill = f'fill="{color_of("value")}"'
    pale = f'd="M{left:g} 52h{2 * pitch:g}v18h{-2 * pitch:g}zM{left + 9 * pitch:g} 52h{pitch:g}'
    assert pale in picture
    full = f'd="M{left + 2 * pitch:g} 52h{2 * pitch:g}v18h{-2 * pitch:g}z" {fill}/>'
    assert full in picture


def test_unbroken_positions_make_one_run() -> None:
    assert runs([]) == [] and runs([5]) == [(5, 6)]
    assert runs([0, 1, 2, 5, 6, 9]) == [(0, 3), (5, 7), (9, 10)]


def test_a_position_outside_the_text_is_refused_by_name() -> None:
    for kept, length in (([10], 10), ([-1], 10), ([], 0)):
        with pytest.raises(InvalidArgument, match="length"):
            survivors([Strip("one", kept)], [], length=length)


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 4), (30, 9), (MOST_LAYERS, 32)])
def test_there_is_a_cell_with_its_number_for_each_head(layers: int, heads: int) -> None:
    shares = [[(layer + head) / (layers + heads) for head in range(heads)]
              for layer in range(layers)]  # fmt: skip
    drawing = Drawing(head_shares(shares, title="t", reading="r"))
    assert len(drawing.cells()) == layers * heads
    check_texts(drawing)
    for one, other in combinations(drawing.cells()[: 3 * heads], 2):
        assert min(one.overlap(other)) <= 0.1
    words = [text.name for text in drawing.texts()]
    assert words.count("0") == 1


def test_shares_that_are_none_are_refused_by_name() -> None:
    for shares in ([], [[]], [[0.5], [0.5, 0.5]], [[1.5]], [[-0.1]], [[0.5]] * (MOST_LAYERS + 1)):
        with pytest.raises(InvalidArgument, match="shares"):
            head_shares(shares)


def test_a_state_that_differs_is_filled_and_carries_its_percent() -> None:
    drawing = Drawing(reach_map(REACH, changed=1, direct=[1, 2]))
    check_texts(drawing)
    filled = [cell for cell in drawing.cells() if cell.fill == color_of("query")]
    assert len(drawing.cells()) == 12 and len(filled) == 5
    words = [text.name for text in drawing.texts()]
    assert words.count("<1") == 2 and {"90", "170", "20"} <= set(words)
    assert "it reaches position 1, 2, 3 after 0 to 2 layers" in reach_map(REACH, changed=1).label


def test_too_many_positions_and_uneven_rows_are_refused() -> None:
    for differences in ([], [[0.1], [0.1, 0.2]], [[0.0] * 80]):
        with pytest.raises(InvalidArgument, match="differences"):
            reach_map(differences, changed=0)

"""A cell for every key and value of a token, whatever the model."""

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.bars import Marker, Segment, memory_bar
from kvlab.figures.token_vectors import token_vectors

from .conftest import Drawing


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (30, 3), (32, 8), (80, 8), (90, 16)])
def test_there_is_a_cell_for_each_vector_and_all_of_it_is_inside(layers, heads):
    drawing = Drawing(token_vectors(layers, heads, 64, title="t", reading="r"))
    assert len(list(drawing.cells())) == 2 * layers * heads
    for text in drawing.texts():
        assert text.left >= 0 and text.right <= drawing.width
        assert text.bottom <= drawing.height
    for cell in drawing.cells():
        assert cell.right <= drawing.width


@pytest.mark.parametrize(("layers", "heads"), [(0, 1), (91, 1), (2, 0), (2, 17)])
def test_what_cannot_be_told_apart_is_refused(layers, heads):
    with pytest.raises(InvalidArgument, match=r"num_layers|num_kv_heads"):
        token_vectors(layers, heads, 64)


def test_a_ghost_starts_where_it_is_told_to():
    parts = [Segment("weights", 20 * 10**9), Segment("cache", 10 * 10**9, "value")]
    guess = Marker("guess", 15 * 10**9)
    ghosts = [
        memory_bar(parts, capacity=80 * 10**9, guess=guess, guess_start=start)
        for start in (0, 20 * 10**9)
    ]
    assert ghosts[0] != ghosts[1]
    assert ghosts[0] == memory_bar(parts, capacity=80 * 10**9, guess=guess)

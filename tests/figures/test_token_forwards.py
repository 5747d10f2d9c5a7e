"""The staircases draw as many cells as the formulas count."""

import pytest

from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.errors import InvalidArgument
from kvlab.figures.token_forwards import count_cells, staircase, token_staircases

SIZES = [(1, 1), (3, 5), (6, 4), (1, 9)]


@pytest.mark.parametrize(("prompt", "new"), SIZES)
def test_the_cells_are_the_token_forwards_of_the_formulas(prompt: int, new: int) -> None:
    without = count_cells(staircase(prompt, new, cached=False))
    cached = count_cells(staircase(prompt, new, cached=True))
    assert without["passed"] == token_forwards_uncached(prompt, new)
    assert cached["passed"] == token_forwards_cached(prompt, new)
    assert cached["read"] == without["again"] and cached["again"] == without["read"] == 0


@pytest.mark.parametrize(("prompt", "new"), SIZES)
def test_every_cell_of_both_staircases_is_drawn(prompt: int, new: int) -> None:
    picture = token_staircases(list("ABCDEFGHIJ")[: prompt + new], prompt)
    assert picture.count("kv-cell") == 2 * new * (prompt + new - 1)


def test_what_passes_again_is_hatched_and_only_there() -> None:
    picture = token_staircases(list("ABCDEFGH"), 3)
    again = count_cells(staircase(3, 5, cached=False))["again"]
    assert picture.count('fill="url(#wasted') == again == 18


@pytest.mark.parametrize(("letters", "prompt"), [("AB", 2), ("AB", 0), ("ABCDEFGHIJKL", 3)])
def test_a_text_that_cannot_be_drawn_is_refused(letters: str, prompt: int) -> None:
    with pytest.raises(InvalidArgument):
        token_staircases(list(letters), prompt)

"""The map of layers against positions shows every share, and nothing touches."""

from itertools import combinations

import numpy as np
import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.layer_map import layer_map, percent

from .conftest import Drawing

TOKENS = ["The", "capital", "of", "Italy", "is", "the", "city", "of"]


def shares(layers: int = 30) -> list[list[float]]:
    random = np.random.default_rng(1)
    made = random.uniform(0, 1.3, size=(layers, len(TOKENS)))
    made[:, :3] = 0
    made[0, 4:] = 0
    return made.tolist()


def drawing(layers: int = 30) -> Drawing:
    return Drawing(str(layer_map(TOKENS, shares(layers), shares(layers), changed=3, title="Map")))


def test_every_share_is_written_in_percent() -> None:
    words = [text.name for text in drawing().texts()]
    wanted = [percent(share) for row in shares() for share in row]
    for word in set(wanted):
        assert words.count(word) >= 2 * wanted.count(word)


@pytest.mark.parametrize("layers", [2, 30])
def test_nothing_touches_and_all_is_inside(layers: int) -> None:
    made = drawing(layers)
    for boxes in (made.texts(), made.cells()):
        for one, other in combinations(boxes, 2):
            across, down = one.overlap(other)
            assert across <= 0.5 or down <= 0.5, (one, other)
        assert all(box.left >= 0 and box.right <= made.width for box in boxes)
        assert all(box.top >= 0 and box.bottom <= made.height for box in boxes)


def test_no_difference_and_a_small_one_are_told_apart() -> None:
    assert [percent(share) for share in (0.0, 1e-7, 1e-4, 0.01, 1.3)] == [
        "0",
        "0",
        "<1",
        "1",
        "130",
    ]


def test_the_label_names_the_first_layer_that_differs() -> None:
    assert "first differ in layer 2" in layer_map(TOKENS, shares(), shares(), changed=3).label
    nothing = [[0.0] * 8] * 2
    assert "never differ" in layer_map(TOKENS, nothing, nothing, changed=3).label


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="tokens=9"):
        layer_map([*TOKENS, "x"], shares(), shares(), changed=3)
    with pytest.raises(InvalidArgument, match="keys="):
        layer_map(TOKENS, [[0.0]], shares(), changed=3)

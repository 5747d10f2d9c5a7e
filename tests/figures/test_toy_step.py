"""The toy's picture shows the toy's numbers."""

import numpy as np
import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.toy_head import compact
from kvlab.figures.toy_step import facts, toy_step
from kvlab.model.toy import Toy, ToyCache, chunk_mask

from .conftest import Drawing


def steps_of(num_heads: int) -> list:
    toy, cache = Toy(num_heads), ToyCache(num_heads)
    return [toy.step(cache, letter) for letter in "ABCDEFGH"]


@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("position", range(8))
def test_every_number_of_the_step_is_in_the_picture(num_heads, position):
    step = steps_of(num_heads)[position]
    words = [text.name for text in Drawing(toy_step(step)).texts()]
    for array in (step.q, step.keys, step.values, step.scores, step.head_outputs, step.embedding):
        assert {compact(float(v)) for v in np.ravel(array)} <= set(words)
    assert {f"{float(w):.2f}" for w in np.ravel(step.weights)} <= set(words)
    assert f"consume {step.letter}, predict {step.prediction}" in words


@pytest.mark.parametrize("num_heads", [1, 2])
def test_texts_and_cells_never_touch_at_any_step(num_heads):
    for step in steps_of(num_heads):
        drawing = Drawing(toy_step(step))
        for boxes in (drawing.texts(), drawing.cells()):
            for index, one in enumerate(boxes):
                for other in boxes[index + 1 :]:
                    across, down = one.overlap(other)
                    assert across <= 0.5 or down <= 0.5, (one, other)


def test_rows_read_and_the_row_written_are_told_apart():
    step = steps_of(1)[3]
    assert facts(step) == {
        "projected this step": "1 token",
        "without a cache": "4 tokens",
        "cache now holds": "4 positions",
        "query kept": "no",
    }


def test_a_key_that_is_there_but_hidden_is_called_masked():
    cache = ToyCache(1)
    first = Toy(1).prefill(cache, "ABCD")[1]
    words = [text.name for text in Drawing(toy_step(first)).texts()]
    assert words.count("masked") == 2
    assert chunk_mask(past=0, new=4)[1].sum() == 2


def test_a_text_shorter_than_the_cache_is_refused():
    with pytest.raises(InvalidArgument, match="text='AB'"):
        toy_step(steps_of(1)[3], text="AB")

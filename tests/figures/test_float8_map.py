"""The pictures of chapter 08: a cell for each byte, strokes and bars to scale, texts apart."""

from itertools import combinations

import pytest

from kvlab.arithmetic.float8_values import float8_table
from kvlab.errors import InvalidArgument
from kvlab.figures.channel_map import Channels, channel_map
from kvlab.figures.comparison import Bar
from kvlab.figures.float8_map import float8_map, float8_rulers, short_value

from .conftest import Drawing


def check_texts(drawing: Drawing) -> None:
    for text in drawing.texts():
        assert text.left >= 0 and text.right <= drawing.width + 0.5, text
        assert text.top >= 0 and text.bottom <= drawing.height, text


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_every_byte_has_one_cell_and_cells_lie_apart(kind: str) -> None:
    drawing = Drawing(float8_map(kind, mark=42, title="t", reading="r"))
    cells = drawing.cells()
    assert len(cells) == 256
    check_texts(drawing)
    for one, other in combinations(cells[:40], 2):
        assert min(one.overlap(other)) <= 0.1


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_every_number_is_written_in_the_cell_of_its_byte(kind: str) -> None:
    drawing = Drawing(float8_map(kind))
    words = [text for text in drawing.texts() if text.left > 90][16:]
    for entry, cell, text in zip(float8_table(kind), drawing.cells(), words, strict=True):
        assert short_value(entry.value) in text.name
        assert cell.holds((text.left + text.right) / 2, (text.top + text.bottom) / 2)


def test_a_short_value_is_within_half_a_percent_of_the_number() -> None:
    for kind in ("e4m3", "e5m2"):
        for entry in float8_table(kind):
            if 0 < abs(entry.value) < float("inf"):
                words, _, exponent = short_value(entry.value).partition("^")
                said = float(words)
                if exponent:
                    said = (-1 if said < 0 else 1) * 2.0 ** int(exponent)
                assert said == pytest.approx(entry.value, rel=5e-3)


def test_the_rulers_have_a_stroke_for_each_positive_number() -> None:
    picture = float8_rulers(title="t")
    assert picture.count("v34") == 126 + 123
    check_texts(Drawing(picture))


def test_a_byte_outside_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="mark"):
        float8_map("e4m3", mark=256)
    with pytest.raises(InvalidArgument, match="kind"):
        float8_map("e3m4")


def test_channels_bars_and_words_stay_on_the_sheet() -> None:
    rows = [
        Channels("keys", [1.0, 2.0, 8.0] * 20, errors=[0.1] * 60, line=2.0, words="median 2"),
        Channels("values", [0.0] * 60, "value"),
    ]
    picture = channel_map(rows, bars=[Bar("held", 1, "25 % of 90 MiB", ghost=4)], title="t")
    drawing = Drawing(picture)
    check_texts(drawing)
    (bar,) = drawing.cells()
    outline = [float(e.get("width")) for e in drawing.root.iter() if e.get("stroke-dasharray")
               and e.get("width")]  # fmt: skip
    assert (bar.right - bar.left) / outline[0] == pytest.approx(1 / 4, abs=0.001)
    assert "keys: 60 channels, the largest 8. median 2." in picture.label
    with pytest.raises(InvalidArgument, match="rows"):
        channel_map([])

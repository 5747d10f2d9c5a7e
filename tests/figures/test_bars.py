"""Bars are to scale, say their unit, and find a place for every word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.errors import InvalidArgument
from kvlab.figures.bars import Marker, Segment, memory_bar, unit_size
from kvlab.figures.comparison import Bar, compare_bars

from .conftest import Drawing

GB = 10**9
SIZES = st.lists(st.integers(0, 60 * GB), min_size=1, max_size=5)


def widths(markup: str) -> list[float]:
    return [cell.right - cell.left for cell in Drawing(markup).cells()]


def test_a_segment_twice_the_size_is_drawn_twice_as_wide():
    bar = memory_bar([Segment("a", 10 * GB), Segment("b", 20 * GB)], capacity=80 * GB)
    first, second = widths(bar)
    assert second + 2 == pytest.approx(2 * (first + 2), abs=0.05)  # 2 pixels of gap belong to each


def test_the_axis_is_in_the_unit_asked_for():
    words = [t.name for t in Drawing(memory_bar([], capacity=80 * 2**30, unit="GiB")).texts()]
    assert words == ["0 GiB", "20 GiB", "40 GiB", "60 GiB", "80 GiB"]


def test_gib_and_gb_are_different_units():
    assert unit_size("GiB") - unit_size("GB") == 73_741_824
    with pytest.raises(InvalidArgument, match=r"unit='Gb'.*GiB"):
        unit_size("Gb")


def test_what_does_not_fit_the_card_is_said_and_drawn():
    bar = memory_bar([Segment("cache", 100 * GB)], capacity=80 * GB)
    assert "It does not fit" in bar.label
    assert any("card ends here" in text.name for text in Drawing(bar).texts())


def test_a_guess_is_a_ghost_beside_the_truth():
    guess = Marker("your guess: 40 GB", 40 * GB)
    bar = memory_bar([Segment("cache", 20 * GB)], capacity=80 * GB, guess=guess)
    assert 'stroke-dasharray="3 3"' in bar
    assert "your guess: 40 GB" in bar


@given(SIZES, st.booleans())
def test_no_word_collides_however_the_memory_is_cut(sizes, marked):
    segments = [Segment(f"part {i}", s, "value", f"{s / GB:.1f} GB") for i, s in enumerate(sizes)]
    markers = [Marker("a place worth a word", sizes[0])] if marked else []
    bar = memory_bar(segments, capacity=80 * GB, markers=markers, caption="one card")
    texts = Drawing(bar).texts()
    for index, one in enumerate(texts):
        assert one.right <= 960
        for other in texts[index + 1 :]:
            across, down = one.overlap(other)
            assert across <= 0.5 or down <= 0.5, (one, other)


def test_a_comparison_starts_at_zero_and_keeps_proportion():
    picture = compare_bars([Bar("a", 1, "1"), Bar("b", 4, "4", "wasted", hatched=True)])
    short, long = widths(picture)
    assert long == pytest.approx(4 * short, rel=1e-3)


def test_a_comparison_of_nothing_is_refused():
    with pytest.raises(InvalidArgument, match="bars"):
        compare_bars([])

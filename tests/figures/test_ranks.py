"""Bars of ranks share one scale, repeat no words, and say where a GPU ends."""

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.bars import Segment
from kvlab.figures.ranks import RankBar, rank_bars

from .conftest import Drawing

GB = 10**9
CARD = 80 * GB


def bar(name: str, *sizes: int, words: str = "") -> RankBar:
    roles = ("weights", "value", "free")
    parts = [
        Segment(role, size, role, f"{size / GB:g} GB")
        for role, size in zip(roles, sizes, strict=False)
    ]
    return RankBar(name, parts, CARD, words)


def widths(markup: str) -> list[float]:
    return [cell.right - cell.left for cell in Drawing(markup).cells()]


def test_all_bars_have_one_scale() -> None:
    first, second = widths(rank_bars([bar("GPU 0", 10 * GB), bar("GPU 1", 20 * GB)]))
    assert second + 2 == pytest.approx(2 * (first + 2), abs=0.05)


def test_a_bar_like_the_one_above_repeats_no_words() -> None:
    picture = rank_bars([bar(f"GPU {i}", 18 * GB, 40 * GB, 22 * GB) for i in range(4)])
    words = [text.name for text in Drawing(picture).texts()]
    assert words.count("value 40 GB") == 1
    assert picture.label.endswith("3 more like the one before.")


def test_a_bar_that_differs_says_only_what_differs() -> None:
    picture = rank_bars([bar("GPU 0", 18 * GB, 40 * GB), bar("GPU 1", 18 * GB, 30 * GB)])
    words = [text.name for text in Drawing(picture).texts()]
    assert words.count("weights 18 GB") == 1 and "value 30 GB" in words


def test_what_passes_the_end_of_a_gpu_is_said_and_marked() -> None:
    picture = rank_bars([bar("GPU 0", 336 * GB)])
    assert "It does not fit" in picture.label
    assert any("GPU ends" in text.name for text in Drawing(picture).texts())


def test_numbers_and_long_lines_stay_inside_without_touching() -> None:
    numbers = {f"name of number {i}": f"{i * 1000:,} bytes" for i in range(7)}
    lines = {"next change": "word " * 60, "start": "vllm serve " + "--flag 1 " * 30}
    bars = [bar("GPU 0", 18 * GB, 2 * GB, 1 * GB, words="KV heads 0 to 3"), bar("GPU 1", 1)]
    drawing = Drawing(rank_bars(bars, numbers=numbers, lines=lines, width=620, title="A plan"))
    texts = drawing.texts()
    for index, one in enumerate(texts):
        assert one.left >= 0 and one.right <= 620 and one.bottom <= drawing.height
        for other in texts[index + 1 :]:
            across, down = one.overlap(other)
            assert across <= 0.5 or down <= 0.5, (one, other)


def test_no_bars_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="bars"):
        rank_bars([])

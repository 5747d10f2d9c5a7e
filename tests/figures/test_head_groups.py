"""Pictures of shared heads: as many cells as vectors, texts apart, bars to scale."""

from itertools import combinations

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.catalogue_chart import ModelRow, catalogue_chart
from kvlab.figures.comparison import Bar
from kvlab.figures.curves import Axis
from kvlab.figures.head_groups import head_groups
from kvlab.figures.palette import color_of
from kvlab.figures.plane import Span, apart
from kvlab.figures.spread import Band, spread_chart

from .conftest import Drawing

STEPS, RECALL = Axis("steps", full=True), Axis("recall")
BARS = [Bar("cache, a token", 40, "40 of 320 KiB", "value", ghost=320)]
BANDS = [
    Band("MHA", [0, 50, 100], [0, 0.2, 0.9], [0, 0.5, 0.95], [0, 0.9, 1.0]),
    Band("MQA", [0, 50, 100], [0, 0.0, 0.1], [0, 0.1, 0.2], [0, 0.3, 0.93], "shared", "dotted"),
]


def check_texts(drawing: Drawing) -> None:
    for text in drawing.texts():
        assert text.left >= 0 and text.right <= drawing.width + 0.5, text
        assert text.top >= 0 and text.bottom <= drawing.height, text
    for one, other in combinations(drawing.texts(), 2):
        across, down = one.overlap(other)
        assert across <= 0.5 or down <= 0.5, (one, other)


@pytest.mark.parametrize(
    ("heads", "kv_heads"), [(1, 1), (8, 8), (8, 1), (9, 3), (64, 8), (71, 1), (128, 128), (128, 8)]
)
def test_there_is_a_cell_for_each_query_key_and_value(heads: int, kv_heads: int) -> None:
    drawing = Drawing(head_groups(heads, kv_heads, title="t", reading="r"))
    counts = dict.fromkeys(("query", "key", "value"), 0)
    for cell in drawing.cells():
        (role,) = [name for name in counts if color_of(name) == cell.fill]
        counts[role] += 1
        assert cell.left >= 0 and cell.right <= drawing.width
    assert counts == {"query": heads, "key": kv_heads, "value": kv_heads}
    check_texts(drawing)
    for one, other in combinations(drawing.cells(), 2):
        assert min(one.overlap(other)) <= 0.1


def test_a_kv_head_stands_below_the_middle_of_the_heads_that_read_it() -> None:
    cells = Drawing(head_groups(8, 2)).cells()
    middles = [(cell.left + cell.right) / 2 for cell in cells]
    queries, keys = middles[:8], middles[8:10]
    assert keys == pytest.approx([sum(queries[:4]) / 4, sum(queries[4:]) / 4], abs=0.02)


def test_every_cell_is_as_wide_as_any_other_for_each_is_one_vector() -> None:
    widths = {round(c.right - c.left, 2) for c in Drawing(head_groups(64, 4)).cells()}
    assert len(widths) == 1


def test_a_bar_fills_its_share_of_the_dashed_outline() -> None:
    drawing = Drawing(head_groups(8, 1, bars=BARS))
    bar = drawing.cells()[-1]
    outline = [float(e.get("width")) for e in drawing.root.iter() if e.get("stroke-dasharray")]
    assert (bar.right - bar.left) / outline[0] == pytest.approx(40 / 320, abs=0.001)
    assert "cache, a token: 40 of 320 KiB." in head_groups(8, 1, bars=BARS).label


@pytest.mark.parametrize(("heads", "kv_heads"), [(0, 1), (129, 1), (8, 3), (8, 0)])
def test_heads_that_cannot_be_shared_are_refused_by_name(heads: int, kv_heads: int) -> None:
    with pytest.raises(InvalidArgument, match=r"num_heads|num_kv_heads"):
        head_groups(heads, kv_heads)


def test_models_are_rows_with_two_bars_to_scale() -> None:
    rows = [
        ModelRow(1, "a-model-with-a-name-that-is-far-too-long-for-its-column", "GQA", 8, "8 on 1",
                 100, "100 B", marked=True),
        ModelRow(2, "latent", "latent", None, "one latent for all", 50, "50 B"),
    ]  # fmt: skip
    drawing = Drawing(catalogue_chart(rows, most_shared=16, most_bytes=200))
    check_texts(drawing)
    blue, green, green_half = drawing.cells()
    assert blue.fill == color_of("query") and green.fill == color_of("value")
    width = green.right - green.left
    assert width == pytest.approx(2 * (green_half.right - green_half.left), rel=0.01)
    with pytest.raises(InvalidArgument, match="rows"):
        catalogue_chart([], most_shared=1, most_bytes=1)


def test_a_band_holds_all_runs_and_its_line_the_middle_one() -> None:
    picture = spread_chart(BANDS, x=STEPS, y=RECALL, y_end=1)
    check_texts(Drawing(picture))
    assert "MQA ends at 0.2 (0.1 to 0.93)" in picture.label
    assert picture.count('fill-opacity="0.22"') == 2
    with pytest.raises(InvalidArgument, match="bands"):
        spread_chart([], x=STEPS, y=RECALL)


def test_axes_refuse_what_they_cannot_show() -> None:
    with pytest.raises(InvalidArgument, match="recall"):
        Span(RECALL, 1, 1)
    with pytest.raises(InvalidArgument, match="logarithmic"):
        Span(Axis("tokens", log=True), 0, 1)
    assert apart([1, 1, 1], low=0, high=100) == [1, 17, 33]

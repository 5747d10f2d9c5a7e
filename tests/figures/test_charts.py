"""Line charts: the same series as SVG and for plotly, with labels and units, small when stored."""

import json
from itertools import pairwise

import plotly.graph_objects as go
import plotly.io as pio
import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.axes import log_ticks, ticks
from kvlab.figures.curves import Axis, Mark, Series, curve_chart
from kvlab.figures.lines import PLOTLY, line_chart
from kvlab.figures.svg import SVG
from kvlab.figures.template import MAX_TEMPLATE_BYTES, template_dict, use_template

from .conftest import Drawing

N = [1, 10, 100, 1000]
LINES = [Series("uncached", N, [1, 99, 9999, 999999], "wasted", "dashed"), Series("cached", N, N)]
AXES = {"x": Axis("new tokens N", log=True), "y": Axis("FLOPs", log=True)}


def test_a_chart_holds_plotly_data_and_a_picture_for_pages_without_plotly():
    bundle = line_chart(LINES, **AXES)._repr_mimebundle_()
    assert set(bundle) == {PLOTLY, SVG, "text/plain"}
    assert bundle[SVG].startswith("<svg")
    assert len(bundle[PLOTLY]["data"]) == 2


def test_a_stored_chart_is_small_and_its_bytes_are_stable():
    first, second = (json.dumps(line_chart(LINES, **AXES)._repr_mimebundle_()) for _ in range(2))
    assert first == second
    assert len(json.dumps(template_dict())) < MAX_TEMPLATE_BYTES


def test_the_template_is_transparent_and_registered_once():
    name = use_template()
    assert use_template() == name
    assert pio.templates[name].layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert isinstance(line_chart(LINES, **AXES).figure, go.Figure)


def test_lines_are_labelled_directly_and_units_are_in_the_hover():
    figure = line_chart(LINES, **AXES).figure
    assert [note.text for note in figure.layout.annotations] == ["uncached", "cached"]
    assert all("new tokens N" in trace.hovertemplate for trace in figure.data)
    assert not figure.layout.showlegend


def test_names_of_lines_that_end_together_are_pushed_apart():
    lines = [Series(f"line {i}", [0, 1], [0, 100 + i]) for i in range(6)]
    ends = Drawing(curve_chart(lines, x=Axis("x"), y=Axis("y"))).texts()
    named = sorted(t.top for t in ends if t.name.startswith("line"))
    assert all(below - above >= 15 for above, below in pairwise(named))


def test_marks_outside_the_axis_are_left_out_and_others_never_collide():
    marks = [Mark("here", 100), Mark("here too", 101), Mark("far", 10**9)]
    words = [t.name for t in Drawing(curve_chart(LINES, marks=marks, **AXES)).texts()]
    assert "here" in words
    assert "here too" in words
    assert "far" not in words


def test_a_logarithmic_axis_refuses_zero_by_name():
    with pytest.raises(InvalidArgument, match=r"series=0.*logarithmic"):
        curve_chart([Series("a", [1, 2], [0, 1])], x=Axis("x"), y=Axis("y", log=True))


@pytest.mark.parametrize("end", [0.003, 1, 7, 80, 1000, 3.2e17])
def test_ticks_are_round_few_and_end_within_the_axis(end):
    places = ticks(end, 5)
    assert places[0] == 0
    assert 2 <= len(places) <= 6
    assert places[-1] <= end * (1 + 1e-9)


def test_a_short_logarithmic_range_still_has_ticks():
    assert len(log_ticks(64, 600)) >= 2
    assert log_ticks(1, 2**17, base=2)[0] == 1


def test_ticks_carry_a_unit_with_its_prefix_and_stay_inside_the_picture():
    lines = [Series("uncached", N, [1e15, 1e17, 1e19, 1e21])]
    chart = curve_chart(lines, x=AXES["x"], y=Axis("work", log=True, unit="FLOP"))
    drawn = Drawing(chart).texts()
    assert "1 PFLOP" in [t.name for t in drawn]
    assert chart.label.endswith("uncached ends at 1 ZFLOP.")
    assert all(t.left >= 0 for t in drawn)


def test_milliseconds_are_written_in_full():
    chart = curve_chart([Series("a", [1, 2], [3, 4221])], x=Axis("x"), y=Axis("ms", full=True))
    assert "ends at 4,221" in chart.label
    assert "4,000" in [t.name for t in Drawing(chart).texts()]

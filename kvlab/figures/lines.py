"""The line charts of `kvlab.figures.curves`, with hovering, by plotly.

A chart carries both: plotly's data for pages that can draw it, and the same series as SVG for
those that can't. plotly is imported only when a chart is made.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvlab.figures import palette
from kvlab.figures.axes import log_ticks
from kvlab.figures.curves import Axis, Mark, Series, curve_chart, tick_words
from kvlab.figures.svg import SVG, Picture
from kvlab.figures.template import use_template

if TYPE_CHECKING:
    import plotly.graph_objects as go

PLOTLY = "application/vnd.plotly.v1+json"
_DASH = {"solid": "solid", "dashed": "dash", "dotted": "dot"}


class Chart:
    """A plotly `figure` and its `still` twin; a notebook shows whichever it can.

    The plotly data comes first where a page can draw it, the SVG is in every page.
    """

    def __init__(self, figure: "go.Figure", still: Picture) -> None:
        self.figure, self.still = figure, still

    @property
    def label(self) -> str:
        """What the chart shows, in a sentence."""
        return self.still.label

    def __repr__(self) -> str:
        return self.label

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {
            PLOTLY: self.figure.to_plotly_json(),
            SVG: str(self.still),
            "text/plain": self.label,
        }


def _trace(line: Series, x: Axis, y: Axis, *, points: bool) -> dict[str, Any]:
    color = palette.color_of(line.role)
    hover = f"{line.name}<br>{x.name}: %{{x:,.4g}}<br>{y.name}: %{{y:,.4g}}<extra></extra>"
    stroke = {"color": color, "width": 2.5, "dash": _DASH[line.dash]}
    return {
        "type": "scatter",
        "mode": "markers" if points else "lines",
        "name": line.name,
        "x": list(line.x),
        "y": list(line.y),
        "line": stroke,
        "marker": {"color": color, "size": 9},
        "hovertemplate": hover,
    }


def _annotation(line: Series, x: Axis, y: Axis) -> dict[str, Any]:
    def place(value: float, axis: Axis) -> float:
        return math.log10(value) if axis.log else value

    return {
        "x": place(line.x[-1], x),
        "y": place(line.y[-1], y),
        "text": line.name,
        "showarrow": False,
        "xanchor": "left",
        "xshift": 8,
    }


def _axis(axis: Axis, values: Sequence[float]) -> dict[str, Any]:
    made: dict[str, Any] = {"title": {"text": axis.name}, "type": "log" if axis.log else "linear"}
    if axis.log:
        places = log_ticks(min(values), max(values), axis.base)
        words = [tick_words(place, axis) for place in places]
        made |= {"tickmode": "array", "tickvals": places, "ticktext": words}
    return made


def line_chart(
    lines: Sequence[Series],
    *,
    x: Axis,
    y: Axis,
    marks: Sequence[Mark] = (),
    title: str = "",
    reading: str = "",
    points: bool = False,
    height: int = 420,
) -> Chart:
    """Return a chart with direct labels and units in the hover; `points` draws a scatter.

    >>> line = Series("cached", [1, 2], [10, 20], "value")
    >>> line_chart([line], x=Axis("new tokens"), y=Axis("token-forwards")).label
    'token-forwards against new tokens: cached ends at 20.'
    """
    import plotly.graph_objects as go

    layout: dict[str, Any] = {"template": use_template(), "height": height}
    xs, ys = [v for line in lines for v in line.x], [v for line in lines for v in line.y]
    layout |= {"xaxis": _axis(x, xs), "yaxis": _axis(y, ys)}
    layout["annotations"] = [_annotation(line, x, y) for line in lines]
    layout["shapes"] = [
        {"type": "line", "x0": m.x, "x1": m.x, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"dash": "dot", "width": 1, "color": "#808080"},
         "label": {"text": m.name, "textposition": "end"}}
        for m in marks
    ]  # fmt: skip
    figure = go.Figure([_trace(line, x, y, points=points) for line in lines], layout)
    still = curve_chart(lines, x=x, y=y, marks=marks, title=title, reading=reading)
    return Chart(figure, still)

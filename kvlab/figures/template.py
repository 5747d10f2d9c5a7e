"""The plotly template `kvlab`: transparent, in the course's colours, small in a stored notebook.

plotly is imported only when a chart is made.
"""

from typing import Any

from kvlab.figures import palette

NAME = "kvlab"
INK = "#7d7d7d"
"""A grey that reads at 4:1 on white and on JupyterLab's dark ground, for plotly's text."""

MAX_TEMPLATE_BYTES = 1000


def template_dict() -> dict[str, Any]:
    """Return the template as plain data; it is stored with every chart, so it stays small."""
    axis = {
        "gridcolor": "rgba(128,128,128,.25)",
        "zeroline": False,
        "linecolor": "rgba(128,128,128,.6)",
        "ticks": "outside",
        "automargin": True,
        "title": {"font": {"size": 13}},
    }
    layout = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": list(palette.ROLES.values()),
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "showlegend": False,
        "margin": {"l": 70, "r": 150, "t": 40, "b": 60},
        "xaxis": axis,
        "yaxis": axis,
        "hoverlabel": {"font": {"family": "monospace"}},
    }
    return {"layout": layout}


def use_template() -> str:
    """Register the template with plotly, once, and return its name."""
    import plotly.graph_objects as go
    import plotly.io as pio

    if NAME not in pio.templates:
        pio.templates[NAME] = go.layout.Template(template_dict())
    return NAME

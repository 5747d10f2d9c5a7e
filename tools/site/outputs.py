"""What a cell showed, as HTML: the richest form that a page without a kernel can draw.

Styles that the course's pictures carry are taken out and put once on the page: the same few
rules stand in every one of them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.site.markup import plain, tag, text
from tools.site.places import rewritten

PLOTLY = "application/vnd.plotly.v1+json"
SVG, HTML, PLAIN = "image/svg+xml", "text/html", "text/plain"

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_HREF = re.compile(r'(?<=\bhref=")([^"]+)(?=")')
_WIDTH = re.compile(r'<svg\b[^>]*? width="([0-9.]+)"')
_LABEL = re.compile(r'\baria-label="([^"]*)"')


@dataclass
class Collected:
    """What the outputs of one page need: styles, once each, and names of scripts."""

    styles: dict[str, None] = field(default_factory=dict)
    needs: set[str] = field(default_factory=set)
    charts: int = 0

    def without_styles(self, markup: str) -> str:
        """Return markup without its styles, which are kept for the page."""
        self.styles.update(dict.fromkeys(_STYLE.findall(markup)))
        return _STYLE.sub("", markup)


def joined(value: object) -> str:
    """Return a text that a notebook stores as one string or as lines.

    >>> joined(["a", "b"])
    'ab'
    """
    return "".join(value) if isinstance(value, list) else str(value)


def picture(markup: str, page: Collected) -> str:
    """Return an SVG as it is, in a frame that scrolls on a narrow screen."""
    found = _WIDTH.search(markup)
    width = f"--w:{found[1]}px" if found else None
    return tag("figure", page.without_styles(markup), class_="pic wide", style=width)


def chart(data: Mapping[str, Any], page: Collected) -> str:
    """Return a plotly figure: its data for the script, and the still picture under it."""
    page.needs.add("plotly")
    page.charts += 1
    figure = data[PLOTLY]
    wanted = {"data": figure.get("data", []), "layout": figure.get("layout", {})}
    label = joined(data.get(PLAIN, "A chart."))
    still = picture(joined(data[SVG]), page) if SVG in data else tag("p", text(label))
    content = json.dumps(wanted, separators=(",", ":")).replace("</", "<\\/")
    held = tag("script", content, type="application/json")
    drawn = tag("div", class_="plot", role="img", aria_label=label)
    return tag("div", drawn + held + tag("div", still, class_="still"), class_="chart")


def sheet(markup: str, page: Collected) -> str:
    """Return HTML of the course: links lead to pages, and wide tables scroll inside."""
    markup = page.without_styles(markup)
    markup = _HREF.sub(lambda found: rewritten(found[1]), markup)
    return tag("div", markup, class_="sheet wide")


def output_html(output: Mapping[str, Any], page: Collected) -> str:
    """Return one output of a cell."""
    kind = output["output_type"]
    if kind == "stream":
        return tag("pre", text(joined(output["text"])), class_="printed")
    if kind == "error":
        lines = f"{output['ename']}: {output['evalue']}"
        return tag("pre", text(lines), class_="printed error")
    data = output["data"]
    if PLOTLY in data:
        return chart(data, page)
    if SVG in data:
        return picture(joined(data[SVG]), page)
    if HTML in data:
        return sheet(joined(data[HTML]), page)
    return tag("pre", text(joined(data.get(PLAIN, ""))), class_="printed")


def outputs_html(outputs: Iterable[Mapping[str, Any]], page: Collected) -> str:
    """Return all outputs of a cell, one below the other."""
    inner = "".join(output_html(output, page) for output in outputs)
    return tag("div", inner, class_="out") if inner else ""


def said(outputs: Iterable[Mapping[str, Any]]) -> str:
    """Return the words of some outputs, for the search: texts, labels of pictures, sheets."""
    found = []
    for output in outputs:
        data = output.get("data", {})
        if "text" in output:
            found.append(joined(output["text"]))
        elif SVG in data:
            found += _LABEL.findall(joined(data[SVG]))[:1]
        elif HTML in data:
            found.append(plain(joined(data[HTML])))
    return " ".join(" ".join(found).split())

"""The shapes of the drawings: text, rectangles, strokes, arrows and hatching, as SVG markup.

Whatever is not a colour with a meaning is drawn in the page's ink, so it follows the theme.
"""

from html import escape

from kvlab.figures import palette
from kvlab.figures.svg import element, number


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float = 12,
    anchor: str = "start",
    mono: bool = False,
    bold: bool = False,
    quiet: bool = False,
    on: str | None = None,
) -> str:
    """Return text with its baseline at `y`; `on` is the colour below it, else the page's ink.

    >>> text(0, 12, "a<b", mono=True)
    '<text x="0" y="12" font-size="12" class="m">a&lt;b</text>'
    """
    classes = [c for c, wanted in (("m", mono), ("b", bold), ("q", quiet)) if wanted]
    attributes = {
        "x": x,
        "y": y,
        "font-size": size,
        "text-anchor": None if anchor == "start" else anchor,
        "class": " ".join(classes) or None,
        "style": f"fill:{palette.text_on(on)}" if on else None,
    }
    return element("text", escape(content) or "\u200b", attributes)


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str | None = None,
    opacity: float | None = None,
    stroke: str | None = None,
    dashed: bool = False,
    line_width: float = 1.5,
    radius: float = 4,
    kind: str | None = None,
) -> str:
    """Return a rounded rectangle; `stroke="ink"` outlines it, `kind="cell"` marks it for tests.

    >>> rect(0, 0, 4, 4, radius=0)
    '<rect x="0" y="0" width="4" height="4" rx="0" fill="none"/>'
    """
    attributes: dict[str, object] = {"x": x, "y": y, "width": width, "height": height}
    inked = stroke == "ink"
    marks = (f"kv-{kind}" if kind else "", "ink" if inked else "")
    marks += ("ground" if fill == "ground" else "",)
    attributes |= {
        "rx": min(radius, width / 2, height / 2),
        "fill": None if fill == "ground" else fill or "none",
        "fill-opacity": opacity,
        "stroke": None if inked else stroke,
        "stroke-width": line_width if stroke else None,
        "stroke-opacity": 0.6 if stroke == palette.NEUTRAL else None,
        "stroke-dasharray": "3 3" if dashed else None,
        "class": " ".join(filter(None, marks)) or None,
    }
    return element("rect", "", attributes)


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    *,
    width: float = 1,
    faint: bool = False,
    dashed: bool = False,
) -> str:
    """Return a straight stroke in the page's ink; a faint one is for axes and grids."""
    attributes: dict[str, object] = {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": "ink"}
    attributes |= {"stroke-width": width, "stroke-opacity": 0.22 if faint else None}
    attributes |= {"stroke-dasharray": "3 3" if dashed else None}
    return element("line", "", attributes)


def arrow(x1: float, y1: float, x2: float, y2: float, *, head: float = 5) -> str:
    """Return a horizontal or vertical arrow in the page's ink, its tip at the second point."""
    if x1 == x2:
        back = y2 - head if y2 > y1 else y2 + head
        tip = f"M{number(x2 - head)} {number(back)}L{number(x2)} {number(y2)}"
        tip += f"L{number(x2 + head)} {number(back)}"
    else:
        back = x2 - head if x2 > x1 else x2 + head
        tip = f"M{number(back)} {number(y2 - head)}L{number(x2)} {number(y2)}"
        tip += f"L{number(back)} {number(y2 + head)}"
    path = element("path", "", {"d": tip, "fill": "none", "class": "ink", "stroke-width": 1.5})
    return line(x1, y1, x2, y2, width=1.5) + path


def hatch(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    role: str = "wasted",
    kind: str | None = None,
) -> str:
    """Return a hatched, outlined rectangle: allocated but empty, or work done twice."""
    color = palette.color_of(role)
    fill = f"url(#{role}-UID)"
    return rect(x, y, width, height, fill=fill, stroke=color, line_width=1, kind=kind)

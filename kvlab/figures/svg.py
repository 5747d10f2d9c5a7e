"""Small pieces of SVG that follow the reader's theme, and the `Picture` they become.

A picture is one `<svg role="img">` whose label tells its present state. It uses two variables,
ink and ground, taken from JupyterLab or VS Code and, on other pages, from the system's choice of
light or dark. The same drawing gives the same bytes. It knows nothing of tokens or caches.
"""

import hashlib
from collections.abc import Mapping
from html import escape

from kvlab.errors import InvalidArgument
from kvlab.figures import palette

SVG = "image/svg+xml"
MAX_WIDTH = 960
"""The widest picture at scale 1, in pixels."""

_THEME = """
.kvlab{--kv-i:#1c1c1c;--kv-g:#fff;
--kv-ink:var(--jp-ui-font-color1,var(--vscode-editor-foreground,var(--kv-i)));
--kv-ground:var(--jp-layout-color1,var(--vscode-editor-background,var(--kv-g)));
color:var(--kv-ink)}
@media(prefers-color-scheme:dark){.kvlab{--kv-i:#ececec;--kv-g:#1a1a1a}}
html[theme=dark] .kvlab,body[data-jp-theme-light=false] .kvlab{--kv-i:#ececec;--kv-g:#1a1a1a}
html[theme=light] .kvlab,body[data-jp-theme-light=true] .kvlab{--kv-i:#1c1c1c;--kv-g:#fff}
"""
_SHAPES = """
svg.kvlab text{font-family:var(--jp-ui-font-family,system-ui,sans-serif);fill:var(--kv-ink)}
svg.kvlab .m{font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)}
svg.kvlab .b{font-weight:600}svg.kvlab .q{fill-opacity:.74}
svg.kvlab .ink{stroke:var(--kv-ink)}svg.kvlab .fill{fill:var(--kv-ink)}
svg.kvlab .ground{fill:var(--kv-ground)}
"""
THEME_CSS = "".join(_THEME.split("\n"))
SVG_CSS = THEME_CSS + "".join(_SHAPES.split("\n"))
_NUMBERS = (int, float)


class Picture(str):
    """Markup, SVG or HTML, that a notebook shows as a picture and a terminal as its label.

    So does a notebook that is not trusted yet: it shows no SVG, but the label in its place.

    >>> Picture("<svg/>", label="an empty cache")
    an empty cache
    """

    label: str

    def __new__(cls, markup: str, *, label: str) -> "Picture":
        made = super().__new__(cls, markup)
        made.label = label
        return made

    def __repr__(self) -> str:
        return self.label

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        mime = SVG if self.startswith("<svg") else "text/html"
        return {mime: str(self), "text/plain": self.label}


def number(value: float) -> str:
    """Return a coordinate with at most two decimals, so that the same drawing has the same bytes.

    >>> number(4.0), number(1 / 3)
    ('4', '0.33')
    """
    if isinstance(value, int):
        return str(value)
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(tag: str, content: str = "", attributes: Mapping[str, object] | None = None) -> str:
    """Return one element; values are escaped, `None` is left out, `content` is markup already.

    >>> element("text", "a", {"x": 1.50, "class": None})
    '<text x="1.5">a</text>'
    """
    parts = [tag]
    for name, value in (attributes or {}).items():
        if value is not None:
            shown = number(value) if isinstance(value, _NUMBERS) else escape(str(value))
            parts.append(f'{name}="{shown}"')
    opening = " ".join(parts)
    return f"<{opening}>{content}</{tag}>" if content else f"<{opening}/>"


def _pattern(role: str, uid: str) -> str:
    stroke = element(
        "path", "", {"d": "M0 0V6", "stroke": palette.color_of(role), "stroke-width": 2.4}
    )
    attributes = {"id": f"{role}-{uid}", "width": 6, "height": 6}
    attributes |= {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    return element("pattern", stroke, attributes)


def picture(parts: str, *, width: float, height: float, label: str, scale: float = 1.0) -> Picture:
    """Close a drawing of `width` x `height` pixels; `scale=1.6` is for a projector.

    `label` says in a sentence what the picture shows now; screen readers speak it.

    >>> picture("<rect/>", width=8, height=8, label="one cell").label
    'one cell'
    """
    if width > MAX_WIDTH:
        raise InvalidArgument("width", width, f"must be {MAX_WIDTH} or less")
    if not scale > 0:
        raise InvalidArgument("scale", scale, "must be above 0")
    digest = hashlib.sha256(f"{label}{width}{height}{scale}{parts}".encode()).hexdigest()
    uid = "kv" + digest[:10]
    used = [role for role in (*palette.ROLES, "free") if f"{role}-UID" in parts]
    defs = element("defs", "".join(_pattern(role, uid) for role in used)) if used else ""
    attributes: dict[str, object] = {"xmlns": "http://www.w3.org/2000/svg", "class": "kvlab"}
    attributes |= {"role": "img", "aria-label": label}
    attributes |= {"width": width * scale, "height": height * scale}
    attributes |= {"viewBox": f"0 0 {number(width)} {number(height)}"}
    attributes |= {"style": "max-width:100%;height:auto;display:block"}
    for role in used:
        parts = parts.replace(f"{role}-UID", f"{role}-{uid}")
    return Picture(
        element("svg", element("style", SVG_CSS) + defs + parts, attributes), label=label
    )

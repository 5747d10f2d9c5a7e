"""The few pieces of HTML that the learner's tools show, in the ink of the page's theme."""

import re
from html import escape

_BOX = (
    "border-left:{width}px solid var(--jp-ui-font-color1,currentColor);padding:6px 12px;"
    "margin:6px 0;max-width:60em;background:var(--jp-layout-color1,transparent);"
    "color:var(--jp-ui-font-color1,inherit);line-height:1.5"
)
SIGNS = {"right": "\u2713 ", "wrong": "\u2717 ", "open": "", "hint": "", "solution": ""}
"""Kinds of boxes and the sign each opens with; colours are left to queries, keys and values."""


def words(text: str) -> str:
    """Return text as HTML: escaped, `code` in backticks, lines kept.

    >>> words("`a<b`")
    '<code>a&lt;b</code>'
    """
    safe = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text, quote=False))
    return safe.replace("\n", "<br>")


def box(kind: str, heading: str, text: str) -> str:
    """Return a box with a heading in words; `kind` is right, wrong, open, hint or solution.

    `text` is HTML already, as `words` makes it.
    """
    style = _BOX.format(width=4 if SIGNS[kind] else 2)
    lead = SIGNS[kind] + escape(heading)
    return f'<div style="{style}" role="note"><strong>{lead}</strong> {text}</div>'


def fold(summary: str, inner: str) -> str:
    """Return something hidden behind one gesture; it works on a page without a kernel."""
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def code(text: str) -> str:
    """Return lines of code as they are."""
    return f"<pre style='white-space:pre-wrap'><code>{escape(text)}</code></pre>"

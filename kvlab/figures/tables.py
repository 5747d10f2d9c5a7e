"""Small tables as HTML that a screen reader can walk: a caption, header cells, numbers aligned.

They follow the theme of the page as the drawings do. No arithmetic: cells are text already.
"""

from collections.abc import Mapping, Sequence
from html import escape

from kvlab.errors import InvalidArgument
from kvlab.figures.svg import THEME_CSS, Picture

SURFACE = (
    "background:linear-gradient(rgba(128,128,128,.055),rgba(128,128,128,.055)),var(--kv-ground);"
    "border:1px solid rgba(128,128,128,.4);border-radius:8px;box-sizing:border-box"
)
"""The look of every sheet made of HTML, like that of `kvlab.figures.frame.Sheet`."""

SANS = "font-family:var(--jp-ui-font-family,system-ui,sans-serif)"
MONO = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)"
_PLAIN = "float:none;width:auto;margin:0;padding:0;font-weight:400;white-space:nowrap"
TABLE_CSS = (
    "table.kv-t{border-collapse:collapse;margin:0;border:0;font-size:1em}"
    ".kv-t caption{text-align:left;padding:0 0 8px;font-weight:600;color:inherit;caption-side:top}"
    ".kvlab .kv-t tr{background:none!important}"
    ".kvlab .kv-t th,.kvlab .kv-t td{padding:4px 14px 4px 0;border:0;text-align:left;"
    "font-weight:400;color:inherit;vertical-align:top;max-width:none;white-space:normal}"
    ".kvlab .kv-t thead th{opacity:.74;border-bottom:1px solid rgba(128,128,128,.5)}"
    ".kvlab .kv-t .n{text-align:right;white-space:nowrap;padding:4px 18px 4px 4px}"
    ".kvlab .kv-t .n:last-child{padding-right:0}"
    ".kvlab .kv-t td.n{" + MONO + "}"
)
"""The style of a table of class `kv-t` on a sheet."""


def sheet_html(
    content: str,
    *,
    label: str,
    scale: float = 1.0,
    css: str = "",
    kind: str = "card",
    fit: bool = False,
) -> Picture:
    """Return HTML on a themed sheet of at most 960 pixels; `kind` becomes a class `kvlab-...`.

    With `fit` the sheet is only as wide as what is on it.

    >>> "kvlab-card" in sheet_html("<b>a</b>", label="a card")
    True
    """
    style = "width:fit-content;min-width:280px;" if fit else ""
    style += f"max-width:{960 * scale:g}px;padding:16px 18px;font-size:{13 * scale:g}px;"
    opening = f'<div role="group" class="kvlab kvlab-{kind}" aria-label="{escape(label)}" '
    opening += f'style="{style}line-height:1.45;color:var(--kv-ink);{SANS};{SURFACE}">'
    return Picture(f"{opening}<style>{THEME_CSS}{css}</style>{content}</div>", label=label)


def _row(cells: Sequence[str], tag: str, numeric: Sequence[bool]) -> str:
    parts = []
    for index, content in enumerate(cells):
        name = "th" if tag == "th" or index == 0 else "td"
        scope = ' scope="col"' if tag == "th" else ' scope="row"' if index == 0 else ""
        right = ' class="n"' if numeric[index] else ""
        parts.append(f"<{name}{scope}{right}>{escape(content)}</{name}>")
    return f"<tr>{''.join(parts)}</tr>"


def table_html(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    numeric: Sequence[int] = (),
) -> str:
    """Return the bare `<table>`; `numeric` lists the 0-based columns set right in monospace."""
    for row in rows:
        if len(row) != len(header):
            raise InvalidArgument("rows", row, f"each must have {len(header)} cells")
    right = [index in numeric for index in range(len(header))]
    parts = [f"<caption>{escape(caption)}</caption>"] if caption else []
    parts.append(f"<thead>{_row(header, 'th', right)}</thead>")
    parts.append("<tbody>" + "".join(_row(row, "td", right) for row in rows) + "</tbody>")
    return f'<table class="kv-t">{"".join(parts)}</table>'


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    numeric: Sequence[int] = (),
    scale: float = 1.0,
) -> Picture:
    """Return a table on a sheet; cells are text, `numeric` lists the columns set right.

    >>> table(["model", "KiB"], [["8B", "128"]], caption="Bytes per token", numeric=[1]).label
    'Bytes per token: a table of 1 row and 2 columns.'
    """
    count = f"{len(rows)} row{'' if len(rows) == 1 else 's'} and {len(header)} columns"
    label = f"{caption or 'Table'}: a table of {count}."
    body = table_html(header, rows, caption=caption, numeric=numeric)
    return sheet_html(body, label=label, scale=scale, css=TABLE_CSS, kind="table", fit=True)


def readout_html(rows: Mapping[str, str]) -> str:
    """Return pairs of name and number as a definition list, the numbers in monospace."""
    cells = "".join(
        f'<dt style="{_PLAIN};opacity:.74">{escape(name)}</dt>'
        f'<dd style="{_PLAIN};text-align:right;{MONO}">{escape(value)}</dd>'
        for name, value in rows.items()
    )
    grid = "display:grid;grid-template-columns:auto auto;gap:5px 18px;margin:0"
    return f'<dl class="kv-r" style="{grid};justify-content:start">{cells}</dl>'


def note(words: str) -> str:
    """Return one line of words under a picture, spoken politely when it changes.

    >>> "k3" in note("k3 is written")
    True
    """
    look = f"font-size:13px;line-height:1.45;padding:6px 2px;color:var(--kv-ink);{SANS}"
    style = f"<style>{THEME_CSS}</style>"
    return f'<div class="kvlab" role="status" style="{look}">{style}{escape(words)}</div>'


def readout_sheet(rows: Mapping[str, str]) -> str:
    """Return names and numbers in a row that wraps, for the place under a picture."""
    cells = "".join(
        f'<div><dt style="{_PLAIN};opacity:.74">{escape(name)}</dt>'
        f'<dd style="{_PLAIN};font-size:1.1em;{MONO}">{escape(value)}</dd></div>'
        for name, value in rows.items()
    )
    look = "display:flex;flex-wrap:wrap;gap:6px 28px;margin:0;padding:4px 2px 8px;font-size:13px;"
    look += f"line-height:1.45;color:var(--kv-ink);{SANS}"
    style = f"<style>{THEME_CSS}</style>"
    return f'<div class="kvlab">{style}<dl style="{look}">{cells}</dl></div>'

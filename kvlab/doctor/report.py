"""What the doctor found, as plain values, as a table in a terminal and in a notebook."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from kvlab import __version__

if TYPE_CHECKING:
    from rich.table import Table

BROKEN = "its installation looks broken: install that package again"
_WORDS = {True: "ok", None: "-", False: "look"}
_STYLES = {True: "green", None: "", False: "bold yellow"}
_HEADS = ("state", "what", "found", "what to do")
_CSS = (
    ".kvlab-doctor{color:var(--jp-ui-font-color1,inherit);font-size:13px;line-height:1.45;"
    "font-family:var(--jp-ui-font-family,system-ui,sans-serif);max-width:960px;padding:16px 18px;"
    "border:1px solid rgba(128,128,128,.4);border-radius:8px;box-sizing:border-box;"
    "background:rgba(128,128,128,.055)}"
    ".kvlab-doctor table{border-collapse:collapse;margin:0;border:0;table-layout:auto;width:100%;"
    "font-size:1em}"
    ".kvlab-doctor tr{background:none!important}"
    ".kvlab-doctor tr>*{padding:4px 16px 4px 0;border:0;vertical-align:baseline;"
    "text-align:left!important;"
    "color:inherit;font-weight:400;white-space:normal;max-width:none}"
    ".kvlab-doctor th{opacity:.74;border-bottom:1px solid rgba(128,128,128,.5)!important}"
    ".kvlab-doctor tr.look td{font-weight:600}"
    ".kvlab-doctor th,.kvlab-doctor td:nth-child(2){white-space:nowrap}"
    ".kvlab-doctor td:nth-child(3){"
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)}"
    ".kvlab-doctor details{margin-top:8px}.kvlab-doctor summary{cursor:pointer}"
)


@dataclass(frozen=True)
class Row:
    """One thing looked at: `ok` is True, False (see `advice`) or None (for information).

    `folded` puts it, while it is well, under one line of a notebook's table.
    """

    name: str
    value: str
    ok: bool | None = None
    advice: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Report:
    """What `doctor` found; shows as a table in a terminal and in a notebook.

    >>> Report((Row("python", "2.7", False, "use Python 3.11 or newer"),)).ok
    False
    """

    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Say whether nothing needs doing before the course can start."""
        return all(row.ok is not False for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, ready for JSON."""
        return {"kvlab": __version__, "ok": self.ok, "rows": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = (
            f"{_WORDS[row.ok]:<4}  {row.name:<{width}}  {row.value}{_arrow(row)}"
            for row in self.rows
        )
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def __rich__(self) -> "Table":
        from rich.markup import escape as plain
        from rich.table import Table

        table = Table("", "what", "found", "what to do", title=f"kvlab {__version__}")
        for row in self.rows:
            cells = (_WORDS[row.ok], row.name, plain(row.value), plain(row.advice))
            table.add_row(*cells, style=_STYLES[row.ok] or None)
        return table

    def _repr_html_(self) -> str:
        """Draw a table in the colours of the notebook's own theme; the state is a word too."""
        folded = [row for row in self.rows if row.folded and row.ok is not False]
        table = _html_table([row for row in self.rows if row not in folded])
        words = f"{len(folded)} packages are as they should be"
        below = f"<details><summary>{words}</summary>{_html_table(folded)}</details>"
        caption = f"kvlab {__version__}: this machine"
        head = f'<div style="font-weight:600;margin-bottom:8px">{caption}</div>'
        style = f"<style>{_CSS}</style>"
        return f'<div class="kvlab-doctor">{style}{head}{table}{below if folded else ""}</div>'


def _arrow(row: Row) -> str:
    return f"  -> {row.advice}" if row.advice else ""


def _html_table(rows: Sequence[Row]) -> str:
    head = "".join(f'<th scope="col">{words}</th>' for words in _HEADS)
    body = "".join(_html_row(row) for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_row(row: Row) -> str:
    mark = ' class="look"' if row.ok is False else ""
    cells = (_WORDS[row.ok], row.name, row.value, row.advice)
    return f"<tr{mark}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"

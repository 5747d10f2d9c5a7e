"""All takeaways on one sheet: in the page, or as a file that prints on one page of paper."""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from kvlab.course.chapters_map import find_chapter
from kvlab.course.takeaways import Takeaway, load_takeaways
from kvlab.figures.svg import Picture
from kvlab.figures.tables import MONO, sheet_html

TITLE = "The KV cache on one page"
_CSS = (
    ".kv-sheet{columns:2;column-gap:26px}"
    ".kv-sheet section{break-inside:avoid;margin:0 0 9px}"
    ".kvlab .kv-sheet h4{font-size:1em;font-weight:600;margin:0 0 2px;color:inherit;"
    "border-bottom:1px solid rgba(128,128,128,.5)}"
    ".kvlab .kv-sheet p{margin:0 0 3px;line-height:1.35}"
    ".kv-sheet .kv-n{font-size:.93em;opacity:.86;" + MONO + "}"
    "@media(max-width:640px){.kv-sheet{columns:1}}"
)
_PAGE = (
    "@page{size:A4;margin:11mm}"
    "body{margin:0;background:#fff;color:#1c1c1c;font-family:system-ui,sans-serif}"
    "@media print{.kvlab{max-width:none!important;border:0!important;padding:0!important;"
    "font-size:8.6pt!important;background:none!important}}"
)


def takeaway_sheet(takeaways: Sequence[Takeaway] | None = None, *, scale: float = 1.0) -> Picture:
    """Return the takeaways by chapter, in two columns; every number is worked out now.

    >>> takeaway_sheet(load_takeaways()[:3]).label
    'The KV cache on one page: 3 takeaways of 1 chapter.'
    """
    rows = load_takeaways() if takeaways is None else takeaways
    chapters = [(n, list(of)) for n, of in groupby(rows, key=lambda one: one.chapter)]
    counted = f"{len(chapters)} chapter{'' if len(chapters) == 1 else 's'}"
    label = f"{TITLE}: {len(rows)} takeaways of {counted}."
    body = f'<div style="font-weight:600;font-size:1.15em;margin-bottom:8px">{TITLE}</div>'
    body += f'<div class="kv-sheet">{"".join(_chapter(n, of) for n, of in chapters)}</div>'
    return sheet_html(body, label=label, scale=scale, css=_CSS, kind="takeaways")


def save_sheet(path: Path | str) -> Path:
    """Write the sheet as one HTML file that needs nothing else, and return its path.

    Open it in a browser and print: it fits one page of A4.
    """
    head = f'<meta charset="utf-8"><title>{TITLE}</title><style>{_PAGE}</style>'
    page = f'<!doctype html><html lang="en" theme="light"><head>{head}</head>'
    made = Path(path)
    made.write_text(f"{page}<body>{takeaway_sheet()}</body></html>\n", encoding="utf-8")
    return made


def _chapter(number: str, takeaways: Sequence[Takeaway]) -> str:
    rows = "".join(
        f'<p>{escape(one.rule)}<br/><span class="kv-n">{escape(one.computed)}</span></p>'
        for one in takeaways
    )
    return f"<section><h4>{number} {escape(find_chapter(number).title)}</h4>{rows}</section>"

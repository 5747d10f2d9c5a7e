"""What the diagnostic says: chapters to read with their minutes, and those to skim."""

from pathlib import Path

from kvlab.course.chapters_map import find_chapter
from kvlab.course.diagnostic import Advice
from kvlab.figures.course_map import LINK_CSS, chapter_link
from kvlab.figures.svg import Picture
from kvlab.figures.tables import TABLE_CSS, sheet_html


def chapter_advice(advice: Advice, *, folder: Path | None = None) -> Picture:
    """Return a row for each chapter: read, skim, or not asked about; links where it is there.

    >>> chapter_advice(Advice(("01",), ("02",), ()), folder=Path("none")).label
    'Read 02, 20 minutes core; skim 01.'
    """
    kinds = (("read", advice.read), ("skim", advice.skim), ("not asked", advice.not_asked))
    said = {number: kind for kind, numbers in kinds for number in numbers}
    rows = ""
    for number in sorted(said):
        kind, minutes = said[number], find_chapter(number).core_minutes
        word = f"<strong>{kind}</strong>" if kind == "read" else kind
        rows += f'<tr><th scope="row">{chapter_link(number, folder)}</th><td>{word}</td>'
        rows += f'<td class="n">{minutes}</td></tr>'
    heads = '<th scope="col">chapter</th><th scope="col">for you</th>'
    heads += '<th scope="col" class="n">minutes core</th>'
    caption = f"To read: {advice.minutes} minutes core"
    body = f'<table class="kv-t"><caption>{caption}</caption><thead><tr>{heads}</tr></thead>'
    body += f"<tbody>{rows}</tbody></table>"
    read, skim = (" ".join(numbers) or "nothing" for numbers in (advice.read, advice.skim))
    label = f"Read {read}, {advice.minutes} minutes core; skim {skim}."
    return sheet_html(body, label=label, css=TABLE_CSS + LINK_CSS, kind="advice", fit=True)

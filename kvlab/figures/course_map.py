"""The map of the course: chapters with their question and minutes, paths, and the line at a top.

A chapter that is in the folder is a link; one that is not yet there says "coming". Where no
folder is, links go to the web.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from kvlab.course.address import chapter_url
from kvlab.course.chapters_map import (
    CHAPTERS,
    PATHS,
    Chapter,
    CoursePath,
    chapters_folder,
    find_chapter,
    find_path,
    notebook_name,
)
from kvlab.figures.svg import Picture
from kvlab.figures.tables import MONO, sheet_html

LINK_CSS = (
    ".kvlab a.kv-go{color:inherit;font-weight:600;text-decoration:underline;"
    "text-underline-offset:3px;text-decoration-thickness:1px}"
    ".kvlab .kv-stop{border:1px solid rgba(128,128,128,.5);border-radius:4px;padding:4px 5px;"
    "text-align:center;white-space:nowrap}"
    ".kvlab .kv-coming{border-style:dashed;opacity:.85}"
    ".kvlab a.kv-go:hover{text-decoration-thickness:2px}"
    ".kvlab table.kv-map{border-collapse:collapse;margin:0;border:0;font-size:1em;width:100%;"
    "table-layout:auto}"
    ".kv-map caption{text-align:left;padding:0 0 8px;font-weight:600;color:inherit;"
    "caption-side:top}"
    ".kvlab .kv-map tr{background:none!important}"
    ".kvlab .kv-map th,.kvlab .kv-map td{padding:5px 14px 5px 0;border:0;text-align:left;"
    "font-weight:400;color:inherit;vertical-align:baseline;max-width:none;white-space:normal}"
    ".kvlab .kv-map thead th{opacity:.74;border-bottom:1px solid rgba(128,128,128,.5)}"
    ".kvlab .kv-map .n{text-align:right;white-space:nowrap;padding-left:4px}"
    ".kvlab .kv-map td.n{" + MONO + "}"
    ".kvlab .kv-map tr.kv-here{box-shadow:inset 3px 0 0 var(--kv-ink)}"
    ".kvlab .kv-map tr.kv-here th{padding-left:10px}"
)
"""The style of links to chapters (class `kv-go`) and of the map."""
_NONE = "\u2013"
_HEADS = ("chapter", "the question it answers", "core", "deep", "interview")


def chapter_link(number: str, folder: Path | None = None) -> str:
    """Return a chapter's number and title as a link, or in words while it is not there.

    >>> chapter_link("03", Path("no-such-folder"))
    '03 The memory formula (coming)'
    """
    chapter, name = find_chapter(number), _target(number, folder)
    words = escape(f"{number} {chapter.title}")
    if name is None:
        return f"{words} (coming)"
    return f'<a class="kv-go" href="{escape(name)}">{words}</a>'


def _target(number: str, folder: Path | None) -> str | None:
    """Return what a link to a chapter opens: the file beside this one, else its place on the web.

    A notebook that was opened alone, as in Colab, has no others beside it.
    """
    if folder is None and chapters_folder() is None:
        return chapter_url(number)
    return notebook_name(number, folder)


def chapter_line(number: str, folder: Path | None = None) -> Picture:
    """Return the line at the top of a chapter: the one before, this one, the next.

    >>> chapter_line("00").label
    'You are in chapter 00, Start here: 5 minutes core, 8 minutes deep.'
    """
    numbers = [chapter.number for chapter in CHAPTERS]
    here, place = find_chapter(number), numbers.index(number)
    before = chapter_link(numbers[place - 1], folder) if place else "the beginning"
    after = chapter_link(numbers[place + 1], folder) if place + 1 < len(numbers) else "the end"
    label = f"You are in chapter {number}, {here.title}: {here.core_minutes} minutes core"
    label += f", {here.deep_minutes} minutes deep." if here.deep_minutes else "."
    cells = (("before", before), ("this", f"<strong>{number} {escape(here.title)}</strong>"))
    body = "".join(_step(name, words) for name, words in (*cells, ("next", after)))
    minutes = f"{here.core_minutes} min core"
    minutes += f" \u00b7 {here.deep_minutes} min deep" if here.deep_minutes else ""
    body += _step("minutes", f'<span style="{MONO}">{minutes}</span>')
    row = f'<div style="display:flex;flex-wrap:wrap;gap:6px 34px">{body}</div>'
    return sheet_html(row, label=label, css=LINK_CSS, kind="chapter-line", fit=True)


def _step(name: str, words: str) -> str:
    return f'<div><div style="opacity:.74">{name}</div>{words}</div>'


def course_map(here: str = "", folder: Path | None = None) -> Picture:
    """Return the table of all chapters; `here` marks the one you are in.

    >>> course_map("00").label[:44]
    'Map of the course: 14 chapters, of which you'
    """
    interview = find_path("interview").minutes
    head = "".join(
        f'<th scope="col"{_right(i)}>{escape(words)}</th>' for i, words in enumerate(_HEADS)
    )
    rows = "".join(_row(c, here, interview.get(c.number), folder) for c in CHAPTERS)
    core, deep = (sum(getattr(c, f"{k}_minutes") for c in CHAPTERS) for k in ("core", "deep"))
    total = ["all chapters", "", str(core), str(deep), str(sum(interview.values()))]
    foot = "".join(f"<td{_right(i)}>{words}</td>" for i, words in enumerate(total))
    caption = "<caption>Fourteen chapters, one question each; minutes at the right</caption>"
    line = "border-top:1px solid rgba(128,128,128,.5)"
    body = f'{rows}<tr style="{line}">{foot}</tr>'
    table = f'<table class="kv-map">{caption}<thead><tr>{head}</tr></thead>'
    table += f"<tbody>{body}</tbody></table>"
    mark = f"you are in chapter {here}" if here else "none is marked"
    label = f"Map of the course: {len(CHAPTERS)} chapters, of which {mark}."
    return sheet_html(table, label=label, css=LINK_CSS, kind="course-map")


def _right(index: int) -> str:
    return ' class="n"' if index >= 2 else ""


def _row(chapter: Chapter, here: str, interview: int | None, folder: Path | None) -> str:
    numbers = (chapter.core_minutes, chapter.deep_minutes, interview)
    cells = "".join(f'<td class="n">{n or _NONE}</td>' for n in numbers)
    name = chapter_link(chapter.number, folder)
    if chapter.number == here:
        name = f"<strong>{chapter.number} {escape(chapter.title)}</strong> (you are here)"
    name += " (optional)" if chapter.optional else ""
    mark = ' class="kv-here"' if chapter.number == here else ""
    return f'<tr{mark}><th scope="row">{name}</th><td>{escape(chapter.question)}</td>{cells}</tr>'


def path_cards(paths: Sequence[CoursePath] = PATHS, folder: Path | None = None) -> Picture:
    """Return the paths through the course: each chapter as a stop with its minutes.

    >>> path_cards().label
    'Paths: Everything, 483 minutes; Interview path, 180 minutes.'
    """
    rows = '<div style="height:20px"></div>'.join(_path_row(path, folder) for path in paths)
    reading = "A dashed stop is a chapter that is coming."
    body = f'{rows}<div style="opacity:.74;margin-top:14px">{reading}</div>'
    spoken = "; ".join(f"{p.title}, {p.total_minutes} minutes" for p in paths)
    return sheet_html(body, label=f"Paths: {spoken}.", css=LINK_CSS, kind="paths")


def _path_row(path: CoursePath, folder: Path | None) -> str:
    head = f'<span style="font-weight:600;font-size:1.15em">{escape(path.title)}</span>'
    head += f'<span style="{MONO};font-size:1.15em"> {path.total_minutes} min</span>'
    head += f'<div style="opacity:.74;margin:2px 0 10px">{escape(path.about)}</div>'
    stops = "".join(_stop(number, minutes, folder) for number, minutes in path.minutes.items())
    return f'{head}<div style="display:flex;flex-wrap:wrap;gap:6px">{stops}</div>'


def _stop(number: str, minutes: int, folder: Path | None) -> str:
    """Return one chapter of a path: its number, linked where it is there, and its minutes."""
    name, title = _target(number, folder), escape(find_chapter(number).title)
    shown = f"<span>{number}</span>"
    if name:
        shown = f'<a class="kv-go" href="{escape(name)}" aria-label="{number} {title}">{number}</a>'
    look = "kv-stop" if name else "kv-stop kv-coming"
    small = f'<div style="{MONO};opacity:.74">{minutes} min</div>'
    body = f'<div style="font-weight:600">{shown}</div>{small}'
    return f'<div class="{look}" title="{title}">{body}</div>'

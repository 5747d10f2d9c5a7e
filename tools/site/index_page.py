"""The first page: what the course is, its chapters with pictures, and the ways through it."""

from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path

from kvlab.course.chapters_map import EVERYTHING, INTERVIEW, CoursePath
from tools.site.cells import Part
from tools.site.chapters import ChapterPage
from tools.site.markup import tag, text
from tools.site.page import Page
from tools.site.thumbnails import label_of, picture_file, share_of

LEAD = (
    "You compute what the cache stores, measure what it saves, and judge what it costs, "
    "on real models."
)
ABOUT = (
    "These pages are the course as it was run: every number was computed or measured by the code "
    "beside it. Guesses, questions and a few pictures work right here. To run the models "
    "yourself, open a chapter as a notebook."
)


def index_page(chapters: Sequence[ChapterPage], pictures: Path, live: Mapping[str, Part]) -> Page:
    """Return the first page; `pictures` holds a picture for each chapter."""
    toy = live["follow_token"]
    start = next(chapter for chapter in chapters if chapter.file)
    links = tag("a", f"Start with chapter {start.number}", href=start.file, class_="go main")
    links += tag("a", "Which chapters can I skip?", href="diagnostic.html", class_="go")
    links += tag("a", "Questions", href="questions.html", class_="go")
    hero = tag("h1", "The KV cache, made tangible") + tag("p", LEAD, class_="lead")
    hero += tag("p", ABOUT) + tag("p", links, class_="gos")
    body = tag("div", hero, class_="hero") + toy.html
    body += tag("h2", "Chapters", id="chapters")
    body += tag("p", "One question each, answered at its end.")
    body += tag("ol", "".join(_card(chapter, pictures) for chapter in chapters), class_="cards")
    body += tag("h2", "Ways through the course", id="paths")
    body += "".join(_path(path, chapters) for path in (EVERYTHING, INTERVIEW))
    body += _diagnostic()
    return Page("index.html", "kvlab: the KV cache, made tangible", body,
                needs=toy.needs, data=toy.data, kind="first")  # fmt: skip


def _card(chapter: ChapterPage, pictures: Path) -> str:
    """Return a chapter as a card: its picture, its question, its minutes."""
    minutes = f"{chapter.chapter.core_minutes} min core"
    if chapter.chapter.deep_minutes:
        minutes += f" \u00b7 {chapter.chapter.deep_minutes} deep"
    name = tag("strong", text(f"{chapter.number} {chapter.title}"))
    told = name + tag("em", text(chapter.chapter.question)) + tag("span", minutes, class_="n")
    if not chapter.file:
        inner = tag("div", "coming", class_="thumb coming") + told
        return tag("li", tag("div", inner, class_="card"))
    source = pictures / f"{chapter.number}.svg"
    thumb = ""
    if source.is_file():
        markup = source.read_text(encoding="utf-8")
        label, share = unescape(label_of(markup)), f"--share:{share_of(markup):.0%}"
        images = "".join(
            tag("img", src=picture_file(chapter.number, theme), alt=label, loading="lazy",
                class_=f"only-{theme}", style=share)
            for theme in ("light", "dark")
        )  # fmt: skip
        thumb = tag("div", images, class_="thumb")
    return tag("li", tag("a", thumb + told, href=chapter.file, class_="card"))


def _path(path: CoursePath, chapters: Sequence[ChapterPage]) -> str:
    files = {chapter.number: chapter for chapter in chapters}
    stops = "".join(_stop(files[number], minutes) for number, minutes in path.minutes.items())
    head = tag("h3", f"{text(path.title)} {tag('span', f'{path.total_minutes} min', class_='n')}")
    return tag("section", head + tag("p", text(path.about)) + tag("ol", stops, class_="stops"),
               class_="path")  # fmt: skip


def _stop(chapter: ChapterPage, minutes: int) -> str:
    inner = tag("b", chapter.number) + " " + tag("span", f"{minutes} min")
    name = f"{chapter.number} {minutes} min, {chapter.title}"
    if not chapter.file:
        return tag("li", tag("span", inner, class_="stop coming", title=f"{name} (coming)"))
    return tag("li", tag("a", inner, href=chapter.file, class_="stop", title=name, aria_label=name))


def _diagnostic() -> str:
    head = tag("h3", "Diagnostic " + tag("span", "10 questions", class_="n"))
    words = "Not sure where to start? Ten questions say which chapters you can skip."
    link = tag("a", "Answer them", href="diagnostic.html", class_="go")
    return tag("section", head + tag("p", words) + tag("p", link), class_="path")

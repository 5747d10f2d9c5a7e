"""One page of the site, and the frame around it: head, header, contents, footer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kvlab.course.address import github_url
from tools.site.chapters import ChapterPage
from tools.site.markup import tag, text
from tools.site.prose import Heading

_READING = ("units.js", "grade-number.js", "grade-units.js")
_MEMORY = ("memory-sums.js", "memory-svg.js", "memory-bar.js", "memory-panel.js")
SCRIPTS: dict[str, tuple[str, ...]] = {
    "plotly": ("plotly.min.js", "charts.js"),
    "questions": (*_READING, "grade.js", "grade-picked.js", "ask.js"),
    "guesses": (*_READING, "guesses.js"),
    "core": ("core.js",),
    "claims": ("claims.js",),
    "frames": ("player.js",),
    "memory": (*_READING, *_MEMORY),
    "diagnostic": ("diagnostic.js",),
}
"""What a page may need, and the scripts that do it, in the order in which they are loaded."""

ALWAYS = ("page.js", "search.js")
_DESCRIPTION = "The KV cache, made tangible: an interactive course on the transformer KV cache."


@dataclass
class Page:
    """A page: its file, its title, the markup of its main part, and what it needs."""

    file: str
    title: str
    body: str
    headings: Sequence[Heading] = ()
    number: str = ""
    needs: set[str] = field(default_factory=set)
    data: tuple[str, ...] = ()
    styles: Sequence[str] = ()
    kind: str = "text"


def render(page: Page, chapters: Sequence[ChapterPage]) -> str:
    """Return the whole HTML of a page."""
    contents = _contents(page.headings)
    main = tag("main", page.body, id="content", tabindex="-1")
    body = tag("a", "Skip to the text", class_="skip", href="#content")
    body += _header(page, chapters)
    body += tag("div", contents + main, class_=f"page {page.kind}" + ("" if contents else " bare"))
    body += _footer() + _search_dialog()
    attributes = {"data_chapter": page.number or None, "data_page": page.file}
    html = tag("html", _head(page) + tag("body", body, **attributes), lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


def _head(page: Page) -> str:
    files = [f"assets/{name}" for name in (*ALWAYS, *scripts_of(page))]
    scripts = [tag("script", src=f"assets/{name}", defer=True) for name in page.data]
    scripts += [tag("script", src=name, defer=True) for name in files]
    viewport = "width=device-width, initial-scale=1"
    parts = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content=viewport),
        f"<title>{text(page.title)}</title>",
        tag("meta", name="description", content=_DESCRIPTION),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="assets/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="assets/site.css"),
        tag("style", "".join(page.styles)) if page.styles else "",
        tag("script", src="assets/theme.js"),
        *scripts,
    ]
    return tag("head", "\n".join(filter(None, parts)))


def scripts_of(page: Page) -> list[str]:
    """Return the scripts that a page needs beyond those of every page, once each, in order.

    >>> scripts_of(Page("a.html", "a", "", needs={"frames"}))
    ['player.js']
    """
    wanted = [name for need in SCRIPTS if need in page.needs for name in SCRIPTS[need]]
    return list(dict.fromkeys(wanted))


def _header(page: Page, chapters: Sequence[ChapterPage]) -> str:
    mark = "".join(tag("span", class_=f"cell {role}") for role in ("key", "value"))
    brand = tag("a", tag("span", mark, class_="mark", aria_hidden="true") + "kvlab",
                class_="brand", href="index.html")  # fmt: skip
    cells = tag("ol", "".join(_cell(chapter, page.number) for chapter in chapters), class_="cells")
    course = tag("nav", cells, aria_label="Chapters", class_="course")
    here = "page" if page.file == "questions.html" else None
    links = tag("a", "Questions", href="questions.html", aria_current=here)
    search = tag("button", "Search" + tag("kbd", "/", aria_hidden="true"), type="button",
                 class_="js-search", hidden=True)  # fmt: skip
    theme = tag("button", "Dark", type="button", class_="js-theme", hidden=True)
    return tag("header", brand + course + tag("div", links + search + theme, class_="tools"),
               class_="top")  # fmt: skip


def _cell(chapter: ChapterPage, here: str) -> str:
    """Return a chapter as a cell of the header's row: written now, read, or not there yet."""
    name = f"{chapter.number} {chapter.title}"
    if not chapter.file:
        return tag(
            "li", tag("span", chapter.number, class_="cell coming", title=f"{name} (coming)")
        )
    current = "page" if chapter.number == here else None
    link = tag("a", chapter.number, href=chapter.file, class_="cell", title=name,
               aria_label=name, aria_current=current, data_number=chapter.number)  # fmt: skip
    return tag("li", link)


def _contents(headings: Sequence[Heading]) -> str:
    shown = [heading for heading in headings if heading.level == 2]
    if len(shown) < 3:
        return ""
    items = "".join(tag("li", tag("a", text(h.words), href=f"#{h.id}")) for h in shown)
    inner = tag("details", tag("summary", "On this page") + tag("ol", items), open=True)
    return tag("nav", inner, class_="contents", aria_label="On this page")


def _footer() -> str:
    code = tag("a", "the repository", href=github_url())
    words = (
        "Text and pictures: CC BY 4.0. Code: Apache-2.0. The notebooks behind these pages, "
        f"the package and every test are in {code}."
    )
    return tag("footer", tag("p", words))


def _search_dialog() -> str:
    label = tag("label", "Search all chapters and questions", for_="search-words")
    entry = tag("input", type="search", id="search-words", autocomplete="off", spellcheck="false")
    close = tag("button", "Close", type="button", class_="js-close")
    told = tag("p", "", class_="told", role="status")
    found = tag("ol", "", class_="found")
    inner = tag("div", label + entry + close, class_="ask-search") + told + found
    return tag("dialog", inner, id="search", aria_label="Search")

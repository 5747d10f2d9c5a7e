"""A chapter's notebook as a page: its head, its cells in sections, the way on."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvlab.course.address import colab_url, github_url
from tools.site.cells import Part, code_cell
from tools.site.chapters import ChapterPage, neighbours
from tools.site.markup import plain, tag, text
from tools.site.outputs import Collected, joined, said
from tools.site.page import Page
from tools.site.prose import Heading, Prose
from tools.site.question_block import question_list
from tools.site.search_index import Section
from tools.site.source import asked_questions, last_call

_AT_HEADING = re.compile(r'(?=<h[2-4] id=")')
_HEADING = re.compile(r'<h[2-4] id="([^"]+)">.*?</h[2-4]>', re.DOTALL)
OF_NOTEBOOKS = ("Clear Outputs of All Cells",)
"""A paragraph that holds one of these tells how to work a notebook; a page leaves it out."""


@dataclass
class _Build:
    """What is gathered while the cells of one chapter are read."""

    chapter: ChapterPage
    live: Mapping[str, Part]
    prose: Prose = field(default_factory=Prose)
    outputs: Collected = field(default_factory=Collected)
    parts: list[str] = field(default_factory=list)
    data: dict[str, None] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)

    def text(self, shown: str) -> None:
        """Add a text cell to the search: each heading in it begins a section."""
        for piece in _AT_HEADING.split(shown):
            found = _HEADING.match(piece)
            if found or not self.sections:
                heading = next((h for h in self.prose.headings if found and h.id == found[1]),
                               Heading(1, "", ""))  # fmt: skip
                title = f"{self.chapter.number} {self.chapter.title}"
                page = self.chapter.file
                self.sections.append(Section(page, heading.id, title, heading.words))
            self.sections[-1].words.append(plain(piece[found.end() :] if found else piece))

    def output(self, words: str) -> None:
        """Add what a code cell showed to the section it stands in."""
        if self.sections:
            self.sections[-1].words.append(words)


def chapter_page(
    chapter: ChapterPage, folder: Path, chapters: Sequence[ChapterPage], live: Mapping[str, Part]
) -> tuple[Page, list[Section]]:
    """Return the page of a chapter, and its sections for the search."""
    document = json.loads((folder / chapter.notebook).read_text(encoding="utf-8"))
    build = _Build(chapter, live)
    for cell in document["cells"]:
        _add(cell, build)
    text_of_all = "".join(build.parts)
    if 'class="when deep-dive"' in text_of_all:
        build.outputs.needs.add("core")
    body = _head(chapter) + text_of_all + _turn(chapters, chapter.number)
    page = Page(
        chapter.file,
        f"{chapter.number} {chapter.title} \u00b7 kvlab",
        body,
        headings=build.prose.headings,
        number=chapter.number,
        needs=build.outputs.needs,
        data=tuple(build.data),
        styles=tuple(build.outputs.styles),
    )
    return page, build.sections


def _add(cell: Mapping[str, Any], build: _Build) -> None:
    """Add one cell to the page."""
    source = joined(cell["source"])
    if cell["cell_type"] == "markdown":
        shown = build.prose.render(_for_a_page(source))
        shown = shown.replace("<p><strong>The question", '<p class="lead"><strong>The question', 1)
        build.parts.append(shown)
        build.text(shown)
        return
    if cell["cell_type"] != "code":
        return
    call = last_call(source)
    if call and call.name == "quiz":
        ids = asked_questions(source, build.chapter.number)
        build.parts.append(question_list(ids, seed=int(str(call.option("seed", 0)))))
        build.outputs.needs.add("questions")
        return
    part = code_cell(cell, build.outputs, build.live)
    build.outputs.needs |= part.needs
    build.data.update(dict.fromkeys(part.data))
    if part.html:
        build.parts.append(tag("div", part.html, class_="cell-block"))
        build.output(said(cell["outputs"]))


def _for_a_page(source: str) -> str:
    """Return a text cell without the title, and without what is said of notebooks alone."""
    pieces = source.split("\n\n")
    return "\n\n".join(
        piece
        for piece in pieces
        if not piece.startswith("# ") and not any(words in piece for words in OF_NOTEBOOKS)
    )


def _head(chapter: ChapterPage) -> str:
    minutes = f"{chapter.chapter.core_minutes} min core"
    if chapter.chapter.deep_minutes:
        minutes += f" \u00b7 {chapter.chapter.deep_minutes} min deep"
    colab = tag("a", "Open in Colab", href=colab_url(chapter.notebook))
    notebook = tag("a", "The notebook", href=github_url(f"chapters/{chapter.notebook}"))
    core = tag("button", "Core sections only", type="button", class_="js-core", hidden=True,
               aria_pressed="false")  # fmt: skip
    lines = [
        tag("p", f"Chapter {chapter.number}", class_="kicker"),
        tag("h1", text(chapter.title)),
        tag("p", f"{minutes} {colab} {notebook} {core}", class_="facts"),
    ]
    return tag("div", "".join(lines), class_="chapter-head")


def _turn(chapters: Sequence[ChapterPage], number: str) -> str:
    before, after = neighbours(chapters, number)
    links = ""
    for chapter, word, name in ((before, "Before", "prev"), (after, "Next", "next")):
        if chapter:
            title = tag("strong", text(f"{chapter.number} {chapter.title}"))
            inner = tag("span", word) + title + tag("em", text(chapter.chapter.question))
            links += tag("a", inner, href=chapter.file, rel=name, class_=name)
    return tag("nav", links, class_="turn", aria_label="Before and next")

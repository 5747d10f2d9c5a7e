"""The chapters in reading order: which are there, and how they follow one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvlab.course.chapters_map import CHAPTERS as COURSE
from kvlab.course.chapters_map import Chapter, notebook_name
from tools.site.places import page_of


@dataclass(frozen=True)
class ChapterPage:
    """A chapter of the course and its page; `file` and `notebook` are "" while it is to come."""

    chapter: Chapter
    file: str
    notebook: str

    @property
    def number(self) -> str:
        """The two digits of the chapter."""
        return self.chapter.number

    @property
    def title(self) -> str:
        """The chapter's title, without its number."""
        return self.chapter.title


def find_chapters(folder: Path) -> list[ChapterPage]:
    """Return every chapter of the course, in order, as it is found in `folder`."""
    found = []
    for chapter in COURSE:
        notebook = notebook_name(chapter.number, folder) or ""
        file = page_of(Path(notebook).stem) if notebook else ""
        found.append(ChapterPage(chapter, file, notebook))
    return found


def neighbours(
    chapters: Sequence[ChapterPage], number: str
) -> tuple[ChapterPage | None, ChapterPage | None]:
    """Return the chapters before and after one, of those that are there."""
    there = [chapter for chapter in chapters if chapter.file]
    place = [chapter.number for chapter in there].index(number)
    before = there[place - 1] if place else None
    after = there[place + 1] if place + 1 < len(there) else None
    return before, after

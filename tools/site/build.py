"""Build the whole site: pages, assets, data for scripts. It replaces the folder in one move."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.site import places
from tools.site.chapter_page import chapter_page
from tools.site.chapters import find_chapters
from tools.site.index_page import index_page
from tools.site.live import LiveParts
from tools.site.page import Page, render, scripts_of
from tools.site.question_pages import diagnostic_page, question_pages
from tools.site.search_index import Section, search_script
from tools.site.stylesheet import stylesheet
from tools.site.thumbnails import write_pictures
from tools.site.unit_table import unit_script

MARK = ".kvlab-site"
"""A file in a built site; a folder without it is never replaced."""


@dataclass(frozen=True)
class Site:
    """All that is written: pages, the text for the search, and data files by name."""

    pages: tuple[Page, ...]
    sections: tuple[Section, ...]
    data: Mapping[str, str]


def make_site(folder: Path) -> tuple[Site, list[str]]:
    """Return the site made from the chapters in `folder`, and the HTML of each page in order."""
    chapters, live = find_chapters(folder), LiveParts()
    pages = [index_page(chapters, folder / "pictures", live)]
    sections: list[Section] = []
    for chapter in chapters:
        if chapter.file:
            page, found = chapter_page(chapter, folder, chapters, live)
            pages.append(page)
            sections += found
    asked, found = question_pages(chapters)
    pages += [*asked, diagnostic_page(chapters)]
    sections += found
    files = {"units.js": unit_script(), "texts.js": search_script(sections), **live.files}
    site = Site(tuple(pages), tuple(sections), files)
    return site, [render(page, chapters) for page in pages]


def build_site(folder: Path = places.CHAPTERS, out: Path = places.OUT) -> Site:
    """Write the site to `out`; a failed build leaves the one that was there.

    Raises `FileExistsError` for a folder that is no site and not empty.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise FileExistsError(f"{out} is not empty and holds no site; name another folder")
    site, rendered = make_site(folder)
    fresh = out.with_name(f"{out.name}.unfinished")
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "assets").mkdir(parents=True)
    (fresh / MARK).write_text("Built by tools/site; the next build replaces this folder.\n",
                              encoding="utf-8")  # fmt: skip
    for page, html in zip(site.pages, rendered, strict=True):
        (fresh / page.file).write_text(html, encoding="utf-8")
    write_pictures(folder / "pictures", fresh)
    _write_assets(site, fresh / "assets")
    shutil.rmtree(out, ignore_errors=True)
    fresh.replace(out)
    return site


def _write_assets(site: Site, folder: Path) -> None:
    """Write styles, scripts and data; plotly's script only where a page draws with it."""
    (folder / "site.css").write_text(stylesheet(), encoding="utf-8")
    wanted = {"theme.js", "page.js", "search.js", "icon.svg"}
    wanted |= {name for page in site.pages for name in scripts_of(page)}
    for name in sorted(wanted):
        source = plotly_script() if name == "plotly.min.js" else places.ASSETS / name
        if source.is_file():
            shutil.copyfile(source, folder / name)
    for name, content in site.data.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")


def plotly_script() -> Path:
    """Return plotly's own script as it lies in the installed package."""
    import plotly

    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

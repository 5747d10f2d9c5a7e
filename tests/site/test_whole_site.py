"""Every page from the disk with the network off: light, dark and narrow, without a finding."""

import pytest
from chapter_pairs import CHAPTERS
from site_page import NARROW, SitePage

from kvlab.course.schema import TOPICS
from tools.site.chapters import find_chapters
from tools.site.question_pages import topic_file

PAGES = ["index.html", "questions.html", "diagnostic.html", *map(topic_file, TOPICS)]
PAGES += [chapter.file for chapter in find_chapters(CHAPTERS) if chapter.file]


@pytest.mark.parametrize("file", PAGES)
def test_a_page_is_sound_light_dark_and_narrow(tab: SitePage, axe, file: str) -> None:
    page = tab.goto(file)
    assert page.query_selector("main h1").inner_text()
    tab.load_axe(axe)
    found = [f"light: {line}" for line in (*tab.accessibility(), *tab.silent_charts())]
    page.emulate_media(color_scheme="dark")
    found += [f"dark: {line}" for line in tab.accessibility("color-contrast")]
    found += ["wide: scrolls sideways"] * (tab.sideways() > 0)
    page.set_viewport_size(NARROW)
    page.wait_for_timeout(50)
    found += [f"narrow: {tab.sideways()} pixels too wide"] * (tab.sideways() > 0)
    found += [f"narrow: the keys do not reach {line}" for line in tab.unreachable()]
    assert found + tab.problems == []


def test_every_page_of_the_site_is_looked_at(built) -> None:
    assert {path.name for path in built.glob("*.html")} == set(PAGES)

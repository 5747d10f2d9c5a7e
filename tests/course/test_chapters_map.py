"""The map: fourteen chapters, paths that add up, links that are never dead."""

import sys
import types
from pathlib import Path

import pytest

from kvlab.course.address import NOTEBOOKS, colab_url, github_url
from kvlab.course.chapters_map import CHAPTERS, EVERYTHING, INTERVIEW, find_chapter, notebook_name
from kvlab.errors import InvalidArgument
from kvlab.figures.course_map import chapter_line, chapter_link, course_map, path_cards

NOTEBOOK_FOLDER = Path(__file__).resolve().parents[2] / "chapters"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("00_start_here.ipynb", "01_follow_one_token.ipynb"):
        (tmp_path / name).touch()
    return tmp_path


def test_there_are_fourteen_chapters_in_order_each_with_a_question() -> None:
    assert [chapter.number for chapter in CHAPTERS] == [f"{i:02d}" for i in range(14)]
    assert all(chapter.question.endswith("?") for chapter in CHAPTERS)


def test_the_interview_path_takes_180_minutes_and_no_more_than_the_core() -> None:
    assert INTERVIEW.total_minutes == 180
    assert all(m <= find_chapter(n).core_minutes for n, m in INTERVIEW.minutes.items())


def test_everything_is_every_minute() -> None:
    assert EVERYTHING.total_minutes == sum(c.core_minutes + c.deep_minutes for c in CHAPTERS)


def test_a_chapter_in_the_folder_is_a_link_and_another_is_coming(folder: Path) -> None:
    assert 'href="01_follow_one_token.ipynb"' in chapter_link("01", folder)
    assert chapter_link("02", folder).endswith("(coming)")
    assert notebook_name("02", folder) is None


@pytest.mark.parametrize("draw", [course_map, path_cards, chapter_line], ids=lambda f: f.__name__)
def test_every_link_leads_to_a_file(draw, folder: Path) -> None:  # type: ignore[no-untyped-def]
    shown = draw("00", folder=folder) if draw is not path_cards else draw(folder=folder)
    links = [part.split('"')[0] for part in shown.split('href="')[1:]]
    assert links
    assert all((folder / link).is_file() for link in links)


def test_a_notebook_opened_alone_links_to_the_web_and_in_colab_to_colab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = {
        chapter.number for chapter in CHAPTERS if notebook_name(chapter.number, NOTEBOOK_FOLDER)
    }
    assert set(NOTEBOOKS) == here, "add a new chapter to kvlab/course/address.py"
    assert all(
        f'href="{github_url(f"chapters/{name}")}"' in course_map() for name in NOTEBOOKS.values()
    )
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert all(f'href="{colab_url(name)}"' in path_cards() for name in NOTEBOOKS.values())
    assert colab_url(NOTEBOOKS["01"]) in chapter_line("00")


def test_the_ends_of_the_course_are_said(folder: Path) -> None:
    assert "the beginning" in chapter_line("00", folder)
    assert "the end" in chapter_line("13", folder)


def test_an_unknown_chapter_is_named() -> None:
    with pytest.raises(InvalidArgument, match="number"):
        find_chapter("14")

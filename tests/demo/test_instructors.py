"""Pages for instructors name demos, presets and questions that exist; their minutes add up."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvlab.course.bank import load_questions
from kvlab.course.chapters_map import find_chapter
from kvlab.demo.registry import DEMOS, find_demo
from kvlab.demo.session import Session

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "chapters" / "instructors"
PAGES = [page for page in sorted(GUIDE.glob("[0-9]*.md")) if page.stem != "12"]
"""All but that of chapter 12, which has no demo: there the engine itself is shown."""
CHAPTERS = sorted({demo.chapter for demo in DEMOS})
CODE = re.compile(r"`([^`]+)`")
QUESTION = re.compile(r"\d\d-[a-z][a-z0-9-]+")
KEYS = {"R", "+", "-", "0", "1", "9", "T", "C", "F", "?", "Page Down"}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def tables(text: str) -> Iterator[list[list[str]]]:
    """Yield every table as rows of cells, its header first."""
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        yield [row for row in rows if not set("".join(row)) <= {"-", ":"}]


def presets_in(cell: str) -> list[str]:
    return [name for name in CODE.findall(cell) if name not in KEYS]


def test_there_is_a_page_for_every_chapter_with_a_demo() -> None:
    assert [page.stem for page in PAGES] == CHAPTERS
    for page in PAGES:
        first = text_of(page).splitlines()[0]
        assert first == f"# {page.stem} {find_chapter(page.stem).title}, in a room"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_parts_and_the_minutes_of_its_demos(page: Path) -> None:
    text = text_of(page)
    for part in ("**Aim.**", "## The one question to ask", "## Wrong answers", "## What to show"):
        assert text.count(part) == 1, part
    own = [demo for demo in DEMOS if demo.chapter == page.stem]
    assert f"**In the room** · {sum(demo.minutes for demo in own)} minutes" in text
    assert {demo.name for demo in own} <= set(re.findall(r"kvlab demo ([a-z-]+)", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_preset_in_a_table_of_a_page_is_one_of_its_demo(page: Path) -> None:
    found = 0
    for header, *rows in tables(text_of(page)):
        named = re.search(r"kvlab demo ([a-z-]+)", header[0])
        if not named:
            continue
        demo = find_demo(named[1])
        for name in (name for row in rows for name in presets_in(row[0])):
            assert demo.preset(name)
            found += 1
    assert found >= 3


def test_every_preset_of_every_demo_is_explained_somewhere() -> None:
    named = {name for page in PAGES for name in CODE.findall(text_of(page))}
    every = {p.name for demo in DEMOS for stage in demo.stages for p in stage.presets}
    assert every - named == set()


def test_questions_that_the_pages_name_are_in_the_bank() -> None:
    known = {question.id for question in load_questions()}
    named = {n for page in PAGES for n in CODE.findall(text_of(page)) if QUESTION.fullmatch(n)}
    assert len(named) > 20 and named <= known


@pytest.mark.parametrize(("heading", "minutes"), [("A lecture", 50), ("A workshop", 180)])
def test_a_playlist_fills_its_time_with_what_there_is(heading: str, minutes: int) -> None:
    text = text_of(GUIDE / "README.md").split(f"## {heading} · {minutes} minutes")[1]
    (header, *rows) = next(tables(text.split("\n## ")[0] + "\n"))
    assert header == ["minutes", "demo", "press", "ask before it"]
    assert sum(int(row[0]) for row in rows) == minutes
    for _, name, press, asks in rows:
        if name:
            demo = find_demo(CODE.fullmatch(name)[1])
            assert all(demo.preset(one) for one in presets_in(press)) and presets_in(press)
            assert "?" in asks or asks.endswith("down."), asks


@pytest.mark.parametrize("page", [*PAGES, GUIDE / "README.md"], ids=lambda page: page.stem)
def test_links_lead_to_files_and_the_index_to_every_page(page: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", text_of(page))
    assert all((GUIDE / link).is_file() for link in links) and links
    if page.stem == "README":
        assert {f"{chapter}.md" for chapter in CHAPTERS} <= set(links)


def test_more_than_twice_as_many_run_when_blocks_refuse() -> None:
    session = Session(find_demo("allocators"))
    session.preset("Blocks refuse")
    running = [int(session.widget.numbers[f"{n}: running"]) for n in ("one piece each", "blocks")]
    assert running[1] > 2 * running[0]


def test_a_cheap_setting_keeps_keys_within_one_in_twenty() -> None:
    session = Session(find_demo("bits"))
    session.preset("INT4, keys by channel")
    assert float(session.widget.numbers["error of keys"].rstrip("%")) < 100 / 20


def test_the_page_of_the_chapter_without_a_demo_names_sections_and_questions_that_exist() -> None:
    text = text_of(GUIDE / "12.md")
    assert text.splitlines()[0] == f"# 12 {find_chapter('12').title}, in a room"
    named = {name for name in CODE.findall(text) if QUESTION.fullmatch(name)}
    assert named and named <= {question.id for question in load_questions()}
    source = (GUIDE.parent / "src" / "12_on_a_real_engine.py").read_text(encoding="utf-8")
    for section in re.findall(r"^\| section (\d+) \|", text, re.MULTILINE):
        assert f"# ## {section}. " in source

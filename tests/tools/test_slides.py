"""A talk from every chapter: whole, in the chapter's own words, and in one file."""

import html
import re
from pathlib import Path

import nbformat
import pytest
from built_chapters import built_sources
from chapter_pairs import notebook_of
from slides_build import main, talk
from slides_page import POLICY, page_html
from slides_pick import LISTS, Choice, Slide, pick
from slides_text import sentences

SOURCES = built_sources()
every_chapter = pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem[:2])
TAGS = re.compile(r"<[^>]+>")


def words(text: str) -> str:
    """Return a text's letters and digits alone, whatever marks it carries."""
    return re.sub(r"[^\w]+", "", html.unescape(TAGS.sub("", text))).lower()


def prose(source: Path) -> str:
    notebook = nbformat.read(notebook_of(source), as_version=4)
    return words("".join(c.source for c in notebook.cells if c.cell_type == "markdown"))


@every_chapter
def test_a_talk_opens_with_the_question_and_ends_with_answer_and_takeaways(source: Path) -> None:
    name, slides = talk(source)
    assert name.startswith(source.stem[:2])
    assert slides[0].kind == "title" and slides[0].lead.endswith("?")
    assert slides[-1].title == "Takeaways" and slides[-1].kind == "picture"
    assert 4 <= len(slides) <= 30
    assert slides[-2].title == "The answer" or source.stem.startswith("00")


@every_chapter
def test_what_stands_above_a_slide_is_the_chapters_own_text(source: Path) -> None:
    said = prose(source)
    for slide in talk(source)[1]:
        for sentence in sentences(TAGS.sub("", slide.lead)):
            assert words(sentence) in said, sentence
        if slide.kind == "picture":
            assert words(slide.caption) in said, slide.caption


@every_chapter
def test_after_each_guess_comes_what_answers_it(source: Path) -> None:
    slides = talk(source)[1]
    asked = [html.unescape(s.caption) for s in slides if s.kind == "guess"]
    answered = [html.unescape(s.caption) for s in slides if s.kind == "answer"]
    for question in answered:
        assert question in asked
    for place, slide in enumerate(slides):
        if slide.kind == "guess":
            assert {s.kind for s in slides[place + 1 : place + 5]} & {"answer", "picture"}


@every_chapter
def test_a_page_fetches_nothing(source: Path) -> None:
    name, slides = talk(source)
    page = page_html(slides, name)
    assert f'content="{POLICY}"' in page and "default-src 'none'" in POLICY
    shown = re.sub(r'xmlns(?::\w+)?="[^"]*"', "", page)
    assert not re.search(r'(?:src|srcset|poster|action)="|url\((?!#)|@import', shown)
    assert not re.search(r'<(?:link|iframe|object|embed|img)\b|href="https?:', shown)
    assert len(page) < 1_500_000


def test_a_speaker_finds_the_text_and_the_hints_for_the_room_in_the_notes() -> None:
    source = next(s for s in SOURCES if s.stem.startswith("03"))
    name, slides = talk(source)
    page = page_html(slides, name)
    notes = re.findall(r'<aside class="notes">(.*?)</aside>', page, re.DOTALL)
    assert len(notes) == len(slides)
    assert "Collect the guess for 24 users aloud" in notes[0]
    assert "Take Llama 3.1 8B" in notes[1] and "Take Llama 3.1 8B" not in notes[0]


def test_a_list_that_names_what_is_not_there_is_refused() -> None:
    source = next(s for s in SOURCES if s.stem.startswith("03"))
    notebook = nbformat.read(notebook_of(source), as_version=4)
    for choice, said in (
        (Choice(leave_out=["no_such_call("]), "no cell holds 'no_such_call\\('"),
        (Choice(deep=["No such section"]), "no section is called"),
        (Choice(lead={"memory_explorer()": "Nobody wrote this"}), "no sentence begins"),
    ):
        with pytest.raises(ValueError, match=said):
            pick(notebook, "03", choice)


def test_a_list_adds_leaves_out_and_chooses_the_sentence() -> None:
    source = next(s for s in SOURCES if s.stem.startswith("03"))
    notebook = nbformat.read(notebook_of(source), as_version=4)
    plain = pick(notebook, "03", Choice())
    without = pick(notebook, "03", Choice(leave_out=["memory_explorer()"]))
    assert len(without) == len(plain) - 1
    more = pick(notebook, "03", Choice(deep=["Three honest answers"]))
    assert len(more) > len(plain) and "Three honest answers" in {slide.title for slide in more}
    start = "Only the green part answers"
    chosen = pick(notebook, "03", Choice(lead={"memory_explorer()": start}))
    assert any(slide.lead.startswith(start) for slide in chosen)


def test_every_list_belongs_to_a_chapter() -> None:
    assert {path.stem for path in LISTS.glob("*.json")} <= {s.stem[:2] for s in SOURCES}


def test_sentences_are_not_cut_at_a_decimal_point() -> None:
    assert sentences("It is 4.5 GiB. Is it? **Yes.** Now.") == [
        "It is 4.5 GiB.", "Is it?", "**Yes.**", "Now.",
    ]  # fmt: skip


def test_what_a_cell_printed_is_never_markup() -> None:
    page = page_html([Slide("title", "<b>x", notes="`<script>` and <script>")], "<i>name")
    assert "<b>x" not in page and "<i>name" not in page
    assert "<code>&lt;script&gt;</code> and &lt;script&gt;" in page


def test_one_command_writes_all_talks_and_their_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    for source in SOURCES:
        file = f"{source.stem[:2]}.html"
        assert (tmp_path / file).exists() and f'href="{file}"' in index
        assert f"{file}: " in said
    first = (tmp_path / "03.html").read_bytes()
    assert main(["03", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "03.html").read_bytes() == first

"""Text, outputs and the folder that is written, part by part."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.site.build import MARK, build_site
from tools.site.chapter_page import chapter_page
from tools.site.chapters import find_chapters
from tools.site.highlight import code_block
from tools.site.markup import plain, slug
from tools.site.mathml import mathml
from tools.site.outputs import Collected, output_html, said
from tools.site.places import rewritten
from tools.site.prose import Prose
from tools.site.thumbnails import in_theme


def shown(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "execute_result", "data": data, "metadata": {}}


def test_a_heading_takes_the_anchor_before_it_and_others_get_one() -> None:
    prose = Prose()
    html = prose.render('<a id="two-phases"></a>\n## 1. Two *phases*\n\n## Again\n\n## Again')
    assert [h.id for h in prose.headings] == ["two-phases", "again", "again-2"]
    assert '<h2 id="two-phases">' in html and prose.headings[0].words == "1. Two phases"


def test_an_anchor_before_a_paragraph_stays_an_anchor() -> None:
    prose = Prose()
    html = prose.render('Text.\n\n<a id="shapes"></a>\nMore text.')
    assert '<span id="shapes" class="here"></span><p>More' in html and "shapes" in prose.taken


def test_links_to_notebooks_become_links_to_pages() -> None:
    html = Prose().render("[a](03_memory_formula.ipynb#x) [b](https://example.org/c.ipynb)")
    assert 'href="03_memory_formula.html#x"' in html and "example.org/c.ipynb" in html
    assert rewritten("#here") == "#here"


def test_a_price_is_no_formula_and_a_formula_is_no_text() -> None:
    html = Prose().render("It costs $3 or $4. As a formula: $q K^\\top / \\sqrt{d}$.")
    assert "$3 or $4" in html and html.count("<math") == 1 and "<msqrt>" in html


def test_an_unknown_command_of_a_formula_is_an_error() -> None:
    with pytest.raises(ValueError, match="frac"):
        mathml("\\frac{1}{2}")
    with pytest.raises(ValueError, match="brace"):
        mathml("a}")


def test_the_line_of_minutes_keeps_what_follows_it() -> None:
    html = Prose().render("**Deep dive \u00b7 2 minutes** for one try")
    assert html == (
        '<p class="when deep-dive"><span class="chip">Deep dive</span> 2 minutes for one try</p>\n'
    )


def test_the_richest_form_that_a_page_can_draw_is_taken() -> None:
    page = Collected()
    svg = '<svg width="300" aria-label="one">\n<style>.a{}</style></svg>'
    drawn = output_html(shown({"image/svg+xml": svg, "text/plain": "one"}), page)
    assert "<svg" in drawn and "<style>" not in drawn and list(page.styles) == [".a{}"]
    assert "--w:300px" in drawn
    sheet = output_html(shown({"text/html": '<a href="03_a.ipynb">x</a>'}), page)
    assert 'href="03_a.html"' in sheet
    assert "&lt;b&gt;" in output_html(shown({"text/plain": "<b>"}), page)
    stream = {"output_type": "stream", "name": "stdout", "text": ["a\n", "<b\n"]}
    assert "a\n&lt;b" in output_html(stream, page)


def test_an_error_shows_its_one_line() -> None:
    error = {"output_type": "error", "ename": "InvalidArgument", "evalue": "n=-1: no"}
    html = output_html(error | {"traceback": ["long"]}, Collected())
    assert "InvalidArgument: n=-1: no" in html and "long" not in html


def test_a_script_in_data_cannot_end_its_element() -> None:
    data = {"application/vnd.plotly.v1+json": {"data": [], "layout": {"t": "</script><b>"}}}
    html = output_html(shown(data), Collected())
    assert html.count("</script>") == 1


def test_the_search_reads_labels_and_words_and_no_markup() -> None:
    outputs = [
        shown({"image/svg+xml": '<svg aria-label="a full bar"><text>1</text></svg>'}),
        shown({"text/html": "<style>.x{}</style><b>two</b> words"}),
    ]
    assert said(outputs) == "a full bar two words"


def test_code_is_coloured_and_other_languages_are_left_plain() -> None:
    assert 'class="kn"' in code_block("import os") and "<span" not in code_block("a = 1", "text")
    assert plain(code_block("x = 1 < 2")) == "x = 1 < 2"


def test_an_id_is_made_of_words_and_given_once() -> None:
    taken: set[str] = set()
    assert [slug("8. Who notices?", taken), slug("Who notices", taken), slug("!", taken)] == [
        "who-notices", "who-notices-2", "section",
    ]  # fmt: skip


def test_a_picture_has_one_theme_or_the_other() -> None:
    dark = "@media(prefers-color-scheme:dark){.kvlab{--kv-g:#000}}"
    both = f"<style>.kvlab{{--kv-g:#fff}}{dark}</style>"
    assert in_theme(both, "light") == "<style>.kvlab{--kv-g:#fff}</style>"
    assert in_theme(both, "dark") == "<style>.kvlab{--kv-g:#fff}.kvlab{--kv-g:#000}</style>"


def test_a_folder_that_is_no_site_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match="holds no site"):
        build_site(out=tmp_path)
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_two_builds_give_the_same_files(one_chapter: Path, tmp_path: Path) -> None:
    first, second = (contents(build(one_chapter, tmp_path / name)) for name in ("a", "b"))
    assert first == second and MARK in first
    assert contents(build(one_chapter, tmp_path / "a")) == first, "a site is replaced by a new one"


def build(chapters: Path, out: Path) -> Path:
    build_site(chapters, out)
    return out


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_each_heading_begins_a_section_of_the_search(tmp_path: Path) -> None:
    text = "The end of one. [link](x.html).\n\n## 2. Next\nIts *own* words.\n\n### Deeper\nMore."
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "# 00 Start here\n\nBefore."},
        {"cell_type": "markdown", "metadata": {}, "source": text},
    ]
    (tmp_path / "00_a.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    chapters = find_chapters(tmp_path)
    page, sections = chapter_page(chapters[0], tmp_path, chapters, {})
    assert [(s.anchor, s.heading, " ".join(s.words)) for s in sections] == [
        ("", "", "Before. The end of one. link."),
        ("next", "2. Next", "Its own words."),
        ("deeper", "Deeper", "More."),
    ]
    assert "# 00" not in page.body and "<h1>Start here</h1>" in page.body

"""The builder: escaping, stable numbers, theme and size."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.errors import InvalidArgument
from kvlab.figures import shapes, svg
from kvlab.figures.measure import shorten_to, text_width, wrap

PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=60)


@given(PRINTABLE)
def test_any_words_stay_words(words):
    made = svg.picture(shapes.text(4, 12, words), width=90, height=20, label=words or "empty")
    root = ET.fromstring(made)
    assert root.get("aria-label") == (words or "empty")
    assert list(root)[-1].text == (words or "\u200b")


def test_markup_in_a_name_is_shown_and_not_run():
    made = shapes.text(0, 0, "<script>alert(1)</script>")
    assert "<script" not in made


@given(PRINTABLE, st.floats(10, 300))
def test_a_shortened_text_fits(words, width):
    assert text_width(shorten_to(words, width)) <= width or shorten_to(words, width) == ""


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=9), max_size=20))
def test_wrapping_keeps_every_word_in_order(words):
    assert " ".join(wrap(" ".join(words), 100)).split() == words


def test_a_projector_gets_the_same_drawing_larger():
    small = svg.picture("<g/>", width=100, height=50, label="a")
    large = svg.picture("<g/>", width=100, height=50, label="a", scale=1.6)
    assert ET.fromstring(large).get("width") == "160"
    assert ET.fromstring(large).get("viewBox") == ET.fromstring(small).get("viewBox")


@pytest.mark.parametrize(("size", "argument"), [({"width": 961}, "width"), ({"scale": 0}, "scale")])
def test_a_size_that_cannot_be_is_refused_by_name(size, argument):
    with pytest.raises(InvalidArgument, match=argument):
        svg.picture("", **{"width": 10, "height": 10, "label": "a"} | size)


def test_one_picture_serves_both_themes():
    css = svg.SVG_CSS
    assert "--jp-ui-font-color1" in css
    assert "--jp-layout-color1" in css
    assert "prefers-color-scheme:dark" in css


def test_in_a_terminal_a_picture_is_its_label():
    assert repr(svg.Picture("<svg/>", label="an empty cache")) == "an empty cache"


def test_a_notebook_gets_the_picture_and_one_not_yet_trusted_its_label():
    bundle = svg.Picture("<svg/>", label="an empty cache")._repr_mimebundle_()
    assert bundle == {svg.SVG: "<svg/>", "text/plain": "an empty cache"}
    assert "text/html" in svg.Picture("<div/>", label="x")._repr_mimebundle_()


def test_drawing_needs_neither_torch_nor_plotly():
    rooms = "attention bars blocks cards cells comparison curves lines race recompute strips tables"
    imports = "; ".join(f"import kvlab.figures.{room}" for room in [*rooms.split(), "toy_step"])
    heavy = "{'torch', 'transformers', 'plotly', 'ipywidgets'}"
    code = f"{imports}; import sys; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

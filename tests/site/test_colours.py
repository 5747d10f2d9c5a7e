"""Everything that is read on the site reads at 4.5 to 1, controls are seen at 3 to 1."""

import re

import pytest

from kvlab.figures.palette import ROLES, contrast, text_on
from tools.site.highlight import COLOURS, GROUNDS
from tools.site.places import ASSETS
from tools.site.stylesheet import FILES, NEUTRALS, stylesheet

THEMES = (("light", 0), ("dark", 1))


@pytest.mark.parametrize(("theme", "i"), THEMES)
@pytest.mark.parametrize("classes", COLOURS)
def test_code_reads_on_its_ground(classes: str, theme: str, i: int) -> None:
    assert contrast(COLOURS[classes][i], GROUNDS[theme]) >= 4.5


@pytest.mark.parametrize(("theme", "i"), THEMES)
def test_text_reads_on_every_ground(theme: str, i: int) -> None:
    colour = {name: pair[i] for name, pair in NEUTRALS.items()}
    grounds = colour["bg"], colour["sheet"], GROUNDS[theme]
    for ground in grounds:
        assert contrast(colour["ink"], ground) >= 7
        assert contrast(colour["quiet"], ground) >= 4.5
        assert contrast(colour["edge"], ground) >= 3


def test_words_on_a_colour_of_meaning_read() -> None:
    for color in ROLES.values():
        assert contrast(text_on(color), color) >= 4.5


def test_colours_stand_in_one_place() -> None:
    """Our own rules take every colour from a variable; paper is black on white."""
    for name in FILES:
        rules = (ASSETS / name).read_text(encoding="utf-8")
        found = set(re.findall(r"#[0-9a-fA-F]{3,6}\b", rules))
        allowed = {"#fff", "#000", "#333", "#999"} if name == "print.css" else {"#6cb9ea"}
        assert found <= allowed, f"{name}: {found - allowed}"


def test_a_variable_that_is_used_is_there() -> None:
    css = stylesheet()
    used = set(re.findall(r"var\((--[\w-]+)\)", css))  # one with a fallback may be missing
    made = set(re.findall(r"(--[\w-]+)\s*:", css))
    assert used - made == set()

"""Colours: one meaning each, told apart, readable."""

from itertools import combinations

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.palette import (
    NEUTRAL,
    PALE,
    REQUESTS,
    ROLES,
    channels,
    color_of,
    contrast,
    mix,
    request_color,
    request_letter,
    text_on,
)

COLORS = [*ROLES.values(), *REQUESTS]
LIGHT, DARK = ("#ffffff", "#1c1c1c"), ("#212121", "#e0e0e0")


@pytest.mark.parametrize("color", COLORS)
def test_text_on_every_colour_reads_at_4_5_to_1(color):
    assert contrast(color, text_on(color)) >= 4.5


@pytest.mark.parametrize(("ground", "ink"), [LIGHT, DARK])
@pytest.mark.parametrize("color", ROLES.values())
def test_the_pages_ink_reads_on_a_pale_cell_in_either_theme(color, ground, ink):
    assert contrast(mix(color, ground, PALE), ink) >= 4.5


@pytest.mark.parametrize(("ground", "ink"), [LIGHT, DARK])
def test_the_pages_ink_reads_on_the_deepest_attention_cell_and_on_grey(ground, ink):
    assert contrast(mix(ROLES["query"], ground, 0.62), ink) >= 4.5
    assert contrast(mix(NEUTRAL, ground, 0.15), ink) >= 4.5


@pytest.mark.parametrize(("ground", "ink"), [LIGHT, DARK])
def test_quiet_text_still_reads_at_4_5_to_1(ground, ink):
    assert contrast(mix(ink, ground, 0.74), ground) >= 4.5


def test_no_two_colours_are_alike_and_requests_are_not_taken_for_roles():
    for one, other in combinations(COLORS, 2):
        apart = sum(abs(a - b) for a, b in zip(channels(one), channels(other), strict=True))
        assert apart >= 40, (one, other)


def test_an_unknown_role_is_named_with_the_rule():
    with pytest.raises(InvalidArgument, match=r"role='queries'.*query, key, value"):
        color_of("queries")


def test_every_request_has_a_letter_of_its_own_though_colours_repeat():
    letters = [request_letter(i) for i in range(60)]
    assert len(set(letters)) == 60
    assert request_color(3) == request_color(11)

"""Maps of slots: to scale, one row after another, and few elements however large the memory."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.allocators import Lane, allocators
from kvlab.figures.slot_map import CELLS_IN_ROW, MAX_PIECES, Field, draw_slots, slot_map
from kvlab.paging.pieces import Piece

FIELD = Field(0, 0, 640, 128, 64)  # 10 pixels a slot, two rows


def widths(markup: str, marked: str) -> list[float]:
    rects = re.findall(r'<rect [^>]*? width="([\d.]+)"([^>]*)>', markup)
    return [float(width) for width, rest in rects if marked in rest]


def test_every_part_of_a_piece_is_to_scale() -> None:
    drawn = draw_slots(FIELD, [Piece((0,), 8, 40, 10, 5)])
    assert widths(drawn, "#7468C9") == [50, 100]  # reserved, then tokens
    assert widths(drawn, "wasted-UID") == [250]


def test_a_piece_that_meets_the_end_of_a_row_goes_on_in_the_next() -> None:
    assert list(FIELD.strips(60, 70)) == [(600, 0, 40), (0, 25, 60)]


def test_only_holes_that_are_too_short_are_external() -> None:
    pieces = [Piece((0,), 8, 24, 24), Piece((1,), 36, 28, 28)]
    assert widths(draw_slots(FIELD, pieces, wanted=8), "free-UID") == [40]
    assert widths(draw_slots(FIELD, pieces), "free-UID") == []


def test_a_shared_piece_has_the_colour_of_sharing_and_two_letters() -> None:
    drawn = draw_slots(FIELD, [Piece((0, 1), 0, 16, 16)])
    assert "#CC79A7" in drawn and ">AB<" in drawn


@pytest.mark.parametrize("num_pieces", [MAX_PIECES + 1, 4000])
def test_more_pieces_cost_no_more_elements(num_pieces: int) -> None:
    pieces = [Piece((i,), 16 * i, 16, 9) for i in range(num_pieces)]
    field = Field(0, 0, 640, 16 * num_pieces, 2 * num_pieces)
    assert draw_slots(field, pieces).count("<rect") <= 3 * 9 * (CELLS_IN_ROW + 1)


def test_coarse_cells_show_the_share_of_their_slots() -> None:
    picture = slot_map([Piece((0,), 0, 32, 16)], num_slots=64, row_slots=64, coarse=True)
    heights = re.findall(r'<rect [^>]*height="([\d.]+)"[^>]*fill="#009E73"', picture)
    assert heights.count("20") == 8  # 16 slots, two to a cell; the other is the key's
    ET.fromstring(str(picture))


def test_a_piece_outside_the_memory_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="pieces"):
        draw_slots(FIELD, [Piece((0,), 120, 16, 1)])


def test_a_lane_says_that_it_refuses() -> None:
    lanes = [Lane("one piece", [], {"running": "4"}, "refuses E: 1 waiting")]
    picture = allocators(lanes, num_slots=64, row_slots=32)
    assert picture.label == "one piece: running 4; refuses E: 1 waiting."
    assert ">refuses E: 1 waiting<" in picture
    ET.fromstring(str(picture))

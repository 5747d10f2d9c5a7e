"""The block map: waste as the formula has it, a shared block drawn and counted once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.errors import InvalidArgument
from kvlab.figures.blocks import Block, block_map

from .conftest import Drawing

LENGTHS = st.lists(st.integers(0, 100), min_size=1, max_size=6)


def blocks_of(lengths: list[int], block_size: int) -> list[Block]:
    """Lay sequences out in blocks, one after another, without sharing."""
    made: list[Block] = []
    for owner, length in enumerate(lengths):
        for start in range(0, length, block_size):
            made.append(Block(len(made), (owner,), min(block_size, length - start)))
    return made


def test_waste_is_counted_for_each_sequence_and_not_for_the_pool():
    blocks = blocks_of([17, 16, 1, 0], block_size=16)
    slots = [16 * sum(b.owners == (i,) for b in blocks) for i in range(4)]
    slack = [sum(16 - b.filled for b in blocks if b.owners == (i,)) for i in range(4)]
    assert slots == [32, 16, 16, 0]
    assert slack == [15, 0, 15, 0]
    assert max(slack) < 16
    assert "30 of 64 allocated slots are empty" in block_map(blocks, block_size=16).label


def test_a_shared_block_is_drawn_and_counted_once():
    blocks = [Block(0, (0, 1), 16), Block(1, (0,), 3), Block(2, (1,), 16)]
    picture = block_map(blocks, block_size=16)
    assert "13 of 48 allocated slots are empty" in picture.label
    assert len(Drawing(picture).cells()) == 3


@given(LENGTHS, st.sampled_from([1, 16, 32]))
def test_the_picture_says_the_waste_that_the_formula_says(lengths, block_size):
    picture = block_map(blocks_of(lengths, block_size), block_size=block_size)
    slots = sum(-(-length // block_size) * block_size for length in lengths)
    assert f"{slots - sum(lengths)} of {slots} allocated slots are empty" in picture.label


def test_a_block_filled_beyond_its_size_is_refused():
    with pytest.raises(InvalidArgument, match="filled=17"):
        block_map([Block(0, (0,), 17)], block_size=16)


def test_the_block_table_names_the_physical_blocks_in_logical_order():
    blocks = blocks_of([40, 20], 16)
    picture = block_map(blocks, block_size=16, table_of=1, table=[3, 4])
    words = [text.name for text in Drawing(picture).texts()]
    assert "block table of request B" in words
    assert words[words.index("block table of request B") :][1:5] == ["0", "3", "1", "4"]


def test_blocks_touched_by_the_last_event_have_a_strong_outline():
    blocks = blocks_of([32], 16)
    touched = block_map(blocks, block_size=16, fresh=[1])
    assert touched.count('stroke-width="2"') == 1

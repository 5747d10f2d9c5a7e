"""The picture of a prefix tree: where blocks stand, how they look, and what is refused."""

import re

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.palette import ROLES, request_color
from kvlab.figures.prefix_tree import TreeBlock, prefix_tree

BLOCKS = [
    TreeBlock(0, -1, "you are", (0, 1), hit=True),
    TreeBlock(3, 0, "who wrote", (0,)),
    TreeBlock(5, 0, "where is", ()),
    TreeBlock(6, -1, "today is", (2,), findable=False, fresh=True),
]


def test_a_shared_block_has_the_colour_of_sharing_and_an_idle_one_a_dashed_outline() -> None:
    drawn = str(prefix_tree(BLOCKS))
    assert ROLES["shared"] in drawn and request_color(0) in drawn
    assert drawn.count("kv-cell") == 4 and drawn.count('stroke-dasharray="3 3"') == 1


def test_the_words_of_a_block_its_holders_and_its_state_stand_in_it() -> None:
    drawn = str(prefix_tree(BLOCKS))
    for words in ("you are", "block 0 · A B · ✓ shared", "block 5 · idle", "C · part full"):
        assert words in drawn


def test_a_chain_goes_right_and_a_branch_goes_down() -> None:
    drawn = str(prefix_tree(BLOCKS))
    links = re.findall(r'<path d="M\S+ (\S+)H\S+V(\S+)H', drawn)
    assert len(links) == 2
    assert links[0][0] == links[0][1] and float(links[1][1]) > float(links[1][0])


def test_the_label_counts_and_an_empty_pool_is_said() -> None:
    label = "4 blocks: 1 shared, 2 of a single request, 1 idle. Longest chain 2."
    assert prefix_tree(BLOCKS).label == label
    assert "nothing is cached" in prefix_tree([]).label


def test_a_block_before_the_one_it_follows_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="blocks=9"):
        prefix_tree([TreeBlock(1, 9, "lost")])


def test_a_chain_too_long_to_be_read_is_refused_and_twelve_still_fit() -> None:
    chain = [TreeBlock(n, n - 1, f"block {n}") for n in range(13)]
    assert "Longest chain 12" in prefix_tree(chain[:12]).label
    with pytest.raises(InvalidArgument, match="blocks=13"):
        prefix_tree(chain)

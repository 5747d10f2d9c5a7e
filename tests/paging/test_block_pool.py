"""Blocks are free, in use or idle, and the one that was left longest ago goes first."""

import pytest

from kvlab.errors import InvalidArgument, OutOfBlocks
from kvlab.paging import BlockPool


def test_blocks_are_handed_out_in_the_order_asked_for() -> None:
    assert BlockPool(4).take(3) == [0, 1, 2]
    assert BlockPool(4, order=[2, 0, 3, 1]).take(4) == [2, 0, 3, 1]


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3], "abc"])
def test_an_order_that_is_not_every_block_once_is_refused(order: object) -> None:
    with pytest.raises(InvalidArgument, match="block_order"):
        BlockPool(3, order=order)


@pytest.mark.parametrize("num_blocks", [0, -1, 2.0, True, None, "8"])
def test_a_pool_needs_a_whole_number_of_blocks(num_blocks: object) -> None:
    with pytest.raises(InvalidArgument, match="num_blocks"):
        BlockPool(num_blocks)


def test_taking_more_than_there_is_takes_none() -> None:
    pool = BlockPool(3)
    pool.take(2)
    with pytest.raises(OutOfBlocks, match="needs 2 blocks, has 1"):
        pool.take(2)
    assert (pool.num_free, pool.num_used, pool.ref_count) == (1, 2, [1, 1, 0])


def test_a_block_released_twice_is_an_error_and_counts_once() -> None:
    pool = BlockPool(4)
    block_id = pool.take(2)[0]
    with pytest.raises(InvalidArgument, match="released twice"):
        pool.release([block_id, block_id])
    assert pool.num_free == 3
    with pytest.raises(InvalidArgument, match=f"block_id={block_id}: nobody uses it"):
        pool.release([block_id])
    assert pool.num_free == 3
    assert len(set(pool.free_block_ids)) == len(pool.free_block_ids) == 3


def test_a_free_block_cannot_be_shared() -> None:
    pool = BlockPool(2)
    with pytest.raises(InvalidArgument, match="holds nothing"):
        pool.share([0])
    assert pool.num_free == 2


def test_the_block_left_longest_ago_is_evicted_first_and_only_when_no_free_one_is_left() -> None:
    pool, evicted = BlockPool(4), []
    pool.on_evict = evicted.append
    held = pool.take(3)
    for block_id in held:
        pool.identity_of[block_id] = "some tokens"
    pool.release([1, 0, 2])
    assert pool.take(1) == [3]  # the free one
    assert evicted == []
    pool.share([1])  # somebody asks for it again, and leaves it last
    pool.release([1])
    assert (set(pool.take(2)), evicted) == ({0, 2}, [0, 2])
    assert pool.num_evictions == 2


def test_the_peak_is_the_most_blocks_that_were_in_use_at_once() -> None:
    pool = BlockPool(8)
    pool.release(pool.take(5))
    pool.take(2)
    assert (pool.peak_used, pool.num_used) == (5, 2)

"""A batch of spans refuses what would read or write where it must not."""

import pytest
import torch

from kvlab.cache.paged_batch import PagedBatch
from kvlab.cache.paged_store import PagedStore
from kvlab.cache.protocol import KVCacheProtocol
from kvlab.errors import CacheFull, InvalidArgument
from kvlab.paging import BlockManager

SIZES = {"num_layers": 2, "num_blocks": 8, "block_size": 4, "num_kv_heads": 2, "head_dim": 3}


def new_manager() -> BlockManager:
    manager = BlockManager(8, 4)
    manager.allocate("a", 6)
    manager.allocate("b", 2)
    return manager


def test_rows_end_in_the_last_column() -> None:
    batch = PagedBatch(
        PagedStore(**SIZES), new_manager(), [("a", 5, 6), ("b", 0, 2)], [[9], [7, 8]]
    )
    assert isinstance(batch, KVCacheProtocol)
    assert batch.input_ids.tolist() == [[0, 9], [7, 8]]
    assert batch.attention_mask.tolist() == [[1] * 6, [0] * 4 + [1] * 2]
    assert batch.slots.tolist() == [[0, 1, 2, 3, 4, 5], [-1] * 4 + [8, 9]]
    assert batch.new_slots.tolist() == [5, 8, 9]
    assert (batch.get_seq_length(), batch.get_mask_sizes(2, 0)) == (4, (6, 0))


def test_a_block_that_others_hold_or_may_find_is_not_written() -> None:
    manager, store = new_manager(), PagedStore(**SIZES)
    manager.fork("a", "twin")
    with pytest.raises(InvalidArgument, match="block 1 is not for 'a' alone"):
        PagedBatch(store, manager, [("a", 5, 6)], [[1]])
    manager.allocate("c", [1, 2, 3, 4])
    manager.commit("c", [1, 2, 3, 4])
    with pytest.raises(InvalidArgument, match="can't be written"):
        PagedBatch(store, manager, [("c", 3, 4)], [[4]])


@pytest.mark.parametrize("span", [("a", 0, 7), ("a", 3, 3), ("a", -1, 2), ("x", 0, 1)])
def test_spans_must_have_slots(span: tuple[str, int, int]) -> None:
    with pytest.raises(InvalidArgument, match=r"span|seq_id"):
        PagedBatch(PagedStore(**SIZES), new_manager(), [span], [[1] * (span[2] - span[1])])


def test_tokens_and_states_must_match_the_spans() -> None:
    store, manager = PagedStore(**SIZES), new_manager()
    with pytest.raises(InvalidArgument, match=r"new_tokens=\[2\]"):
        PagedBatch(store, manager, [("a", 5, 6)], [[1, 2]])
    with pytest.raises(InvalidArgument, match="spans"):
        PagedBatch(store, manager, [], [])
    batch = PagedBatch(store, manager, [("a", 5, 6)], [[1]])
    states = torch.zeros(1, 2, 2, 3)
    with pytest.raises(InvalidArgument, match=r"key_states=\(1, 2\)"):
        batch.update(states, states, 0)


def test_blocks_are_copied_one_after_the_other_in_all_layers() -> None:
    store, other = PagedStore(**SIZES), PagedStore(**{**SIZES, "num_blocks": 2})
    store.keys[:] = torch.arange(8.0).view(1, 8, 1, 1, 1)
    store.values[:] = -store.keys
    store.copy_blocks([(1, 2), (2, 3)])
    assert store.keys[:, :4, 0, 0, 0].tolist() == [[0, 1, 1, 1]] * 2
    store.copy_blocks_to(other, [(5, 0)])
    assert other.values[1, 0].unique().tolist() == [-5]
    for pairs in ([(8, 0)], [(0, 2)], [(-1, 0)]):
        with pytest.raises(InvalidArgument, match="blocks run from 0 to"):
            store.copy_blocks_to(other, pairs)
    with pytest.raises(InvalidArgument, match="other"):
        store.copy_blocks_to(PagedStore(**{**SIZES, "head_dim": 4}), [(0, 0)])


@pytest.mark.parametrize("name", list(SIZES))
def test_sizes_of_a_store_are_whole_numbers(name: str) -> None:
    for value in (0, -1, 1.5, None):
        with pytest.raises(InvalidArgument, match=name):
            PagedStore(**{**SIZES, name: value})


def test_a_store_that_is_larger_than_the_machine_is_refused_by_name() -> None:
    with pytest.raises(CacheFull, match="no memory for blocks"):
        PagedStore(**{**SIZES, "num_blocks": 10**13})

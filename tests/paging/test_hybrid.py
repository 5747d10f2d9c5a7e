"""Layers with and without a window page for themselves, from one pool."""

import pytest

from kvlab.errors import InvalidArgument, KvlabError, OutOfBlocks
from kvlab.paging.hybrid import HybridManager
from kvlab.paging.rules import broken_rules


def test_only_the_group_with_a_window_gives_blocks_back() -> None:
    manager = HybridManager(64, 4, {"full": None, "window": 8})
    manager.allocate("a", 6)
    for length in range(7, 101):
        manager.append("a")
        full, window = (manager.block_table("a", group) for group in ("full", "window"))
        assert len(full) == len(window) == -(-length // 4)
        assert -1 not in full
        assert sum(block_id >= 0 for block_id in window) <= 3  # 8 tokens touch 3 blocks at most
        assert manager.slot_mapping("a", "window", max(0, length - 8), length)
        assert broken_rules(*manager.groups.values()) == []
    assert manager.num_free == 64 - 25 - 2
    manager.free("a")
    assert manager.num_free == 64


def test_a_step_is_done_in_every_group_or_in_none() -> None:
    manager = HybridManager(5, 4, {"full": None, "window": 4})
    manager.allocate("a", 8)
    with pytest.raises(OutOfBlocks, match="needs 2 blocks, has 1"):
        manager.allocate("b", 1)
    assert [len(group.tables) for group in manager.groups.values()] == [1, 1]
    with pytest.raises(OutOfBlocks, match="seq_id='a'"):
        manager.append("a", 9)
    assert {group.num_tokens("a") for group in manager.groups.values()} == {8}
    assert broken_rules(*manager.groups.values()) == []


def test_a_fork_is_copied_in_each_group_that_is_written() -> None:
    manager = HybridManager(20, 4, {"full": None, "window": 4})
    manager.allocate("a", 6)
    manager.fork("a", "b")
    manager.append("b")
    copies = manager.copies()
    assert [len(pairs) for pairs in copies.values()] == [1, 1]
    assert copies["full"] != copies["window"]
    assert broken_rules(*manager.groups.values()) == []


def test_bad_settings_are_named() -> None:
    with pytest.raises(InvalidArgument, match="windows"):
        HybridManager(4, 4, {})
    with pytest.raises(KvlabError, match="sliding_window"):
        HybridManager(4, 4, {"window": 0})
    with pytest.raises(InvalidArgument, match="group='other'"):
        HybridManager(4, 4, {"full": None}).block_table("a", "other")

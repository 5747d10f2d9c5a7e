"""Block tables grow by whole blocks, and every refusal is named and changes nothing."""

from typing import Any

import pytest

from kvlab.errors import InvalidArgument, KvlabError, OutOfBlocks, Unsupported
from kvlab.paging import BlockManager
from kvlab.paging.rules import broken_rules


@pytest.mark.parametrize(("length", "num_blocks"), [(3, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_a_block_comes_with_the_first_token_that_needs_it(length: int, num_blocks: int) -> None:
    whole, grown = BlockManager(8, 4), BlockManager(8, 4)
    whole.allocate("a", length)
    grown.allocate("a", 1)
    for _ in range(length - 1):
        grown.append("a")
    for manager in (whole, grown):
        assert len(manager.block_table("a")) == num_blocks == manager.blocks_for(length)
        assert manager.num_used == num_blocks


def test_a_prompt_that_fills_its_block_takes_the_next_one_with_the_first_new_token() -> None:
    manager = BlockManager(8, 4)
    manager.allocate("a", 4)
    assert (len(manager.block_table("a")), manager.blocks_needed("a")) == (1, 1)
    manager.append("a")
    assert len(manager.block_table("a")) == 2


def test_2048_tokens_are_128_blocks_of_16() -> None:
    manager = BlockManager(128, 16)
    manager.allocate("a", 2048)
    assert (len(manager.block_table("a")), manager.num_free) == (128, 0)


def test_appending_many_tokens_at_once_is_appending_them_one_by_one() -> None:
    once, singly = BlockManager(40, 7), BlockManager(40, 7)
    for manager, steps in ((once, [53]), (singly, [1] * 53)):
        manager.allocate("a", 10)
        for n in steps:
            manager.append("a", n)
    assert once.block_table("a") == singly.block_table("a")
    assert once.num_tokens("a") == singly.num_tokens("a") == 63


def test_a_token_lies_in_the_slot_that_its_block_table_says() -> None:
    manager = BlockManager(4, 4, block_order=[2, 0, 3, 1])
    manager.allocate("a", 7)
    assert manager.block_table("a") == [2, 0]
    assert manager.slot_mapping("a", 0, 7) == [8, 9, 10, 11, 0, 1, 2]
    assert manager.slot_mapping("a", 3, 5) == [11, 0]
    for start, end in ((0, 8), (-1, 2), (5, 4)):
        with pytest.raises(InvalidArgument, match="positions 0 to 7 are held"):
            manager.slot_mapping("a", start, end)


def test_a_first_chunk_gets_slots_for_itself_only() -> None:
    manager = BlockManager(8, 4)
    assert manager.allocate("a", list(range(20)), num_new_tokens=6) == 0
    assert manager.num_tokens("a") == 6
    manager.commit("a", list(range(20)), 6)
    assert manager.allocate("b", list(range(20)), num_new_tokens=6) == 4
    assert manager.num_tokens("b") == 10
    assert manager.allocate("c", list(range(5)), num_new_tokens=6) == 4
    assert manager.num_tokens("c") == 5


def test_a_request_that_does_not_fit_is_refused_and_nothing_changes() -> None:
    manager = BlockManager(4, 4)
    manager.allocate("a", 9)
    assert manager.can_allocate(4)
    assert not manager.can_allocate(5)
    with pytest.raises(OutOfBlocks, match="seq_id='b': needs 2 blocks, has 1"):
        manager.allocate("b", 5)
    manager.append("a", 3)
    assert not manager.can_append("a", 5)
    with pytest.raises(OutOfBlocks, match="seq_id='a': needs 2 blocks, has 1") as refusal:
        manager.append("a", 6)
    assert (refusal.value.needed, refusal.value.available) == (2, 1)
    assert (manager.num_tokens("a"), manager.num_free, "b" in manager) == (12, 1, False)
    assert broken_rules(manager) == []


def test_a_hit_on_an_idle_block_does_not_count_as_room_twice() -> None:
    manager, tokens = BlockManager(4, 4), list(range(12))
    manager.allocate("a", tokens)
    manager.commit("a", tokens)
    manager.free("a")
    assert (manager.num_free, manager.match_prefix([*tokens, 99])) == (4, 12)
    assert manager.can_allocate([*tokens, *range(4)])
    assert not manager.can_allocate([*tokens, *range(5)])
    with pytest.raises(OutOfBlocks, match="needs 2 blocks, has 1"):
        manager.allocate("b", [*tokens, *range(5)])
    assert manager.allocate("b", [*tokens, 1]) == 12
    assert broken_rules(manager) == []


def test_two_samples_share_all_blocks_until_one_writes_and_only_the_tail_is_copied() -> None:
    manager = BlockManager(8, 4)
    manager.allocate("parent", 6)
    manager.fork("parent", "child")
    assert (manager.num_used, manager.pool.ref_count[:2]) == (2, [2, 2])
    manager.append("parent")
    manager.append("child")
    assert manager.copies() == [(1, 2)]
    assert manager.copies() == []
    assert (manager.block_table("parent"), manager.block_table("child")) == ([0, 2], [0, 1])
    assert (manager.pool.ref_count[0], manager.num_used) == (2, 3)
    assert broken_rules(manager) == []


def test_a_fork_at_a_block_boundary_copies_nothing() -> None:
    manager = BlockManager(8, 4)
    manager.allocate("parent", 8)
    manager.fork("parent", "child")
    for seq_id in ("parent", "child"):
        manager.append(seq_id)
    assert manager.copies() == []
    assert (manager.num_used, manager.stats().copied_blocks) == (4, 0)


def test_a_fork_needs_a_block_for_the_copy_too() -> None:
    manager = BlockManager(2, 4)
    manager.allocate("parent", 6)
    manager.fork("parent", "child")
    assert manager.blocks_needed("child") == 1
    with pytest.raises(OutOfBlocks, match="needs 1 blocks, has 0"):
        manager.append("child")
    manager.free("parent")
    manager.append("child")  # nobody else holds the tail any more: no copy
    assert manager.copies() == []


def test_what_is_cut_off_is_given_back_and_a_shared_block_is_not_written_again() -> None:
    manager, tokens = BlockManager(8, 4), list(range(12))
    manager.allocate("a", tokens)
    manager.commit("a", tokens)
    manager.truncate("a", 6)
    assert (manager.num_used, manager.num_committed_tokens("a")) == (2, 4)
    manager.append("a")  # block 1 is cached: others may come for it, so it is copied
    assert manager.copies() == [(1, 3)]
    assert manager.match_prefix([*tokens, 0]) == 12
    with pytest.raises(InvalidArgument, match="7 tokens are held"):
        manager.truncate("a", 8)
    manager.truncate("a", 0)
    assert (manager.block_table("a"), broken_rules(manager)) == ([], [])


def test_blocks_that_fall_out_of_the_window_are_given_back() -> None:
    manager = BlockManager(8, 4, prefix_caching=False, sliding_window=6)
    manager.allocate("a", 9)
    for length in range(9, 60):
        manager.append("a")  # the token at position `length` sees positions length - 5 to length
        table = manager.block_table("a")
        first_seen = max(0, length - 5)
        assert [block_id == -1 for block_id in table[: first_seen // 4]] == [True] * (
            first_seen // 4
        )
        assert manager.slot_mapping("a", first_seen, length + 1)
        assert manager.num_used <= 3
        assert broken_rules(manager) == []
    with pytest.raises(InvalidArgument, match="are held"):
        manager.slot_mapping("a", 0, 4)
    with pytest.raises(InvalidArgument, match="left the window"):
        manager.truncate("a", 30)
    manager.free("a")
    assert manager.num_free == 8


def test_a_window_makes_room_before_it_asks_for_more() -> None:
    manager = BlockManager(2, 4, prefix_caching=False, sliding_window=4)
    manager.allocate("a", 8)
    for _ in range(100):
        assert manager.can_append("a")
        manager.append("a")
        assert manager.num_used <= 2
    assert manager.num_tokens("a") == 108


def test_a_window_and_prefix_caching_exclude_one_another() -> None:
    with pytest.raises(Unsupported, match="prefix_caching=False"):
        BlockManager(8, 4, sliding_window=6)


BAD_CALLS: list[tuple[str, Any]] = [
    ("block_size", lambda m: BlockManager(8, 0)),
    ("num_blocks", lambda m: BlockManager(0, 4)),
    ("sliding_window", lambda m: BlockManager(8, 4, sliding_window=0, prefix_caching=False)),
    ("seq_id", lambda m: m.allocate("a", 3)),
    ("number of tokens", lambda m: m.allocate("b", -1)),
    ("number of tokens", lambda m: m.allocate("b", True)),
    ("tokens", lambda m: m.allocate("b", 3.0)),
    ("tokens", lambda m: m.allocate("b", {1, 2})),
    ("tokens", lambda m: m.allocate("b", None)),
    ("num_new_tokens", lambda m: m.allocate("b", [1, 2], num_new_tokens=-1)),
    ("num_new_tokens", lambda m: m.append("a", 0)),
    ("num_new_tokens", lambda m: m.append("a", -2)),
    ("num_new_tokens", lambda m: m.append("a", 1.5)),
    ("num_new_tokens", lambda m: m.blocks_needed("a", "x")),
    ("seq_id", lambda m: m.append("nobody")),
    ("seq_id", lambda m: m.free("nobody")),
    ("seq_id", lambda m: m.free([])),
    ("seq_id", lambda m: m.commit("nobody", [1])),
    ("seq_id", lambda m: m.block_table("nobody")),
    ("seq_id", lambda m: m.fork("nobody", "b")),
    ("child_id", lambda m: m.fork("a", "a")),
    ("num_computed", lambda m: m.commit("a", [1, 2], -1)),
    ("num_computed", lambda m: m.commit("a", list(range(9)))),
    ("num_computed", lambda m: m.commit("a", [1, 2, 3], 5)),
    ("num_tokens", lambda m: m.truncate("a", -1)),
    ("num_tokens", lambda m: m.truncate("a", 1.0)),
]


@pytest.mark.parametrize(("argument", "call"), BAD_CALLS)
def test_bad_input_is_named_and_changes_nothing(argument: str, call: Any) -> None:
    manager = BlockManager(8, 4)
    manager.allocate("a", 5)
    with pytest.raises(KvlabError, match=argument):
        call(manager)
    assert (manager.num_tokens("a"), manager.num_free, len(manager.tables)) == (5, 6, 1)
    assert broken_rules(manager) == []


def test_the_counters_say_what_happened() -> None:
    manager, tokens = BlockManager(6, 4), list(range(9))
    manager.allocate("a", tokens)
    manager.commit("a", tokens)
    manager.allocate("b", tokens)
    manager.free("a")
    stats = manager.stats()
    assert (stats.num_free_blocks, stats.num_idle_blocks, stats.num_used_blocks) == (3, 0, 3)
    assert (stats.prefix_query_tokens, stats.prefix_hit_tokens) == (18, 8)
    assert stats.hit_rate == 8 / 18
    assert (stats.peak_used_blocks, stats.num_sequences, stats.evicted_blocks) == (4, 1, 0)

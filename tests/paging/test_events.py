"""Recorded events tell the whole story, in words and to the block, and cost nothing when off."""

import random

import pytest

from kvlab.errors import InvalidArgument, OutOfBlocks
from kvlab.paging import BlockManager, EventLog
from kvlab.paging.contiguous import ContiguousManager
from kvlab.paging.events import KINDS
from kvlab.paging.random_moves import RandomMoves
from kvlab.paging.replay import KEYFRAME_EVERY, Replay
from kvlab.paging.waste import paged_use


def test_a_short_story_in_words() -> None:
    log = EventLog()
    manager = BlockManager(4, 4, log=log)
    manager.allocate("ann", [1, 2, 3, 4, 5])
    manager.commit("ann", [1, 2, 3, 4, 5])
    manager.allocate("bob", [1, 2, 3, 4, 6])
    manager.fork("bob", "eve")
    manager.append("eve")
    manager.free("ann")
    with pytest.raises(OutOfBlocks):
        manager.allocate("joe", 9)
    manager.free("bob")
    manager.free("eve")
    manager.allocate("joe", 16)
    assert [event.words for event in log.events] == [
        "ann arrives with 5 tokens",
        "ann gets blocks 0, 1",
        "block 0 of ann is full and computed: others may share it",
        "bob arrives with 5 tokens",
        "bob shares block 0: 4 tokens need not be computed",
        "bob gets block 2",
        "eve forks from bob: both hold blocks 0, 2",
        "eve must not write to shared block 2: it copies it to block 3",
        "eve has 6 tokens now",
        "ann ends and gives back blocks 0, 1",
        "joe needs 3 blocks, the pool has 1",
        "bob ends and gives back blocks 0, 2",
        "eve ends and gives back blocks 0, 3; still cached: block 0",
        "block 0 was idle the longest: what it holds is forgotten",
        "joe arrives with 16 tokens",
        "joe gets blocks 3, 2, 1, 0",
    ]
    assert {event.kind for event in log.events} <= set(KINDS)


@pytest.mark.parametrize("window", [None, 6])
def test_any_step_can_be_played_back_to_the_block(window: int | None) -> None:
    log = EventLog()
    manager = BlockManager(12, 3, log=log, sliding_window=window, prefix_caching=window is None)
    run = RandomMoves(manager, random.Random(4))
    recorded = []
    for _ in range(400):
        run.step()
        tables = {seq_id: tuple(t.block_ids) for seq_id, t in manager.tables.items()}
        tokens = {seq_id: t.num_tokens for seq_id, t in manager.tables.items()}
        cached = {b for b in range(12) if manager.pool.identity_of[b] is not None}
        idle = set(manager.pool.idle_block_ids)
        recorded.append((len(log.events), tables, tokens, cached, idle, paged_use(manager).used))
    replay = Replay(log.events)
    assert len(replay) > 3 * KEYFRAME_EVERY
    random.Random(1).shuffle(recorded)  # forwards and backwards
    for step, tables, tokens, cached, idle, used in recorded:
        state = replay.at(step)
        assert {seq_id: tuple(table) for seq_id, table in state.tables.items()} == tables
        assert (state.num_tokens, state.cached, state.idle()) == (tokens, cached, idle)
        assert sum(state.filled(3).values()) == used
        assert state.owners().keys() == {b for t in tables.values() for b in t if b >= 0}


def test_recording_changes_nothing_but_the_log() -> None:
    plain, told = BlockManager(10, 4), BlockManager(10, 4, log=EventLog())
    for manager in (plain, told):
        run = RandomMoves(manager, random.Random(9))
        for _ in range(500):
            run.step()
    assert plain.stats() == told.stats()
    assert plain.pool.free_block_ids == told.pool.free_block_ids
    tables = [{s: t.block_ids for s, t in m.tables.items()} for m in (plain, told)]
    assert tables[0] == tables[1]


def test_the_contiguous_allocator_tells_its_story_too() -> None:
    log = EventLog()
    manager = ContiguousManager(50, max_seq_len=20, log=log)
    manager.allocate("ann", 5)
    manager.allocate("bob", 1)
    manager.append("ann")
    with pytest.raises(OutOfBlocks):
        manager.allocate("eve", 1)
    manager.free("ann")
    assert [event.words for event in log.events] == [
        "ann arrives with 5 tokens and reserves slots 0 to 19",
        "bob arrives with 1 token and reserves slots 20 to 39",
        "ann has 6 tokens now",
        "eve wants 20 slots in one piece; 10 are free, the longest piece has 10",
        "ann ends and gives back 20 slots",
    ]
    replay = Replay(log.events)
    assert replay.at(3).tables == {"ann": range(20), "bob": range(20, 40)}
    assert replay.at(3).num_tokens == {"ann": 6, "bob": 1}
    assert replay.at(5).tables == {"bob": range(20, 40)}


def test_a_step_that_is_not_in_the_story_is_named() -> None:
    for step in (1, -1, 0.5):
        with pytest.raises(InvalidArgument, match="step"):
            Replay([]).at(step)

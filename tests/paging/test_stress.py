"""Nothing breaks the block manager: random moves by the ten thousand, and any short sequence.

KVLAB_STRESS_OPERATIONS=1000000 makes the first test do a million operations (some 15 seconds).
"""

import os
import random
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from kvlab.errors import KvlabError, OutOfBlocks
from kvlab.paging import BlockManager
from kvlab.paging.block_manager import BlockManager as Manager
from kvlab.paging.block_pool import BlockPool
from kvlab.paging.block_steps import BlockSteps
from kvlab.paging.prefix_index import PrefixIndex
from kvlab.paging.random_moves import RandomMoves
from kvlab.paging.rules import broken_rules
from kvlab.paging.shadow import RuleBroken
from kvlab.paging.stress import always_the_same, stress

OPERATIONS = int(os.environ.get("KVLAB_STRESS_OPERATIONS", "50000"))


def test_random_operations_break_no_rule_and_lose_no_block() -> None:
    done = stress(OPERATIONS, seed=1)
    moves = sum(done[move] for move in ("arrive", "append", "commit", "fork", "truncate", "end"))
    assert moves + done["refused"] + done["drop"] >= OPERATIONS
    for happened in ("refused", "evicted", "copied", "cached tokens hit", "fork", "truncate"):
        assert done[happened] > 0


def test_the_same_seed_makes_the_same_moves() -> None:
    assert stress(3_000, seed=5, round_length=1_000) == stress(3_000, seed=5, round_length=1_000)


def test_a_thousand_operations_leave_no_block_behind() -> None:
    manager = BlockManager(20, 4)
    run = RandomMoves(manager, random.Random(11))
    for _ in range(1_000):
        run.step()
    for seq_id in list(manager.tables):
        manager.free(seq_id)
    assert manager.num_free == len(manager.pool.free_block_ids) + len(manager.pool.idle_block_ids)
    assert manager.num_free == 20
    assert manager.pool.ref_count == [0] * 20


def break_it(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """Return faults that real allocators have had, by name."""
    grow, forget, free = BlockSteps._grow, PrefixIndex.forget, Manager.free

    def never_copy(self: Manager, *args: object) -> None:
        self._copy_tail = lambda *_: None
        grow(self, *args)

    def forget_the_copy(self: Manager, *args: object) -> None:
        grow(self, *args)
        self._copies.clear()

    def free_head_first(self: Manager, seq_id: object) -> None:
        self.tables[seq_id].block_ids.reverse()
        free(self, seq_id)

    def keep_the_entry(self: PrefixIndex, block_id: int) -> None:
        identity = self.identity_of[block_id]
        forget(self, block_id)
        self.add_or_find(block_id, identity)

    def change_over_alone(self: Manager, seq_id: object, table: object, i: int, known: int) -> bool:
        self.pool.share([known])
        self.pool.release([table.block_ids[i]])
        table.block_ids[i] = known
        return True

    def ignore_what_came_before(self: PrefixIndex, identity: tuple) -> int:
        return next((b for b, i in enumerate(self.identity_of) if i and i[1:] == identity[1:]), -1)

    return {
        "never copy": lambda: monkeypatch.setattr(BlockSteps, "_grow", never_copy),
        "forget the copy": lambda: monkeypatch.setattr(BlockSteps, "_grow", forget_the_copy),
        "head first": lambda: monkeypatch.setattr(Manager, "free", free_head_first),
        "keep the entry": lambda: monkeypatch.setattr(PrefixIndex, "forget", keep_the_entry),
        "change over alone": lambda: monkeypatch.setattr(
            BlockSteps, "_change_over", change_over_alone
        ),
        "ignore the parent": lambda: monkeypatch.setattr(
            PrefixIndex, "find", ignore_what_came_before
        ),
        "one block too late": lambda: monkeypatch.setattr(
            BlockSteps, "_room", lambda self, table: len(table.block_ids) * self.block_size + 1
        ),
        "lose a block": lambda: monkeypatch.setattr(
            BlockPool, "release", lambda self, ids: [self.ref_count.__setitem__(b, 0) for b in ids]
        ),
    }


FAULTS = list(break_it(pytest.MonkeyPatch()))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_driver_finds_a_broken_manager(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)[fault]()
    with pytest.raises((RuleBroken, KvlabError, IndexError)):
        stress(60_000, seed=3, check_every=1, round_length=3_000)


class ShortSequences(RuleBasedStateMachine):
    """Every way to make a few moves; hypothesis looks for the shortest one that breaks a rule."""

    sequences = Bundle("sequences")

    @initialize(size=st.sampled_from([1, 2, 3]), collide=st.booleans())
    def start(self, size: int, collide: bool) -> None:
        hash_block = always_the_same if collide else hash
        manager = BlockManager(6, size, hash_block=hash_block)
        self.run = RandomMoves(manager, random.Random(0))

    @rule(
        target=sequences,
        tokens=st.lists(st.integers(0, 1), min_size=1, max_size=8),
        chunk=st.one_of(st.none(), st.integers(0, 4)),
    )
    def arrive(self, tokens: list[int], chunk: int | None) -> int:
        try:
            return self.run.arrive(tokens, "", chunk)
        except OutOfBlocks:
            return -1

    @rule(seq_id=sequences, tokens=st.lists(st.integers(0, 1), min_size=1, max_size=4))
    def append(self, seq_id: int, tokens: list[int]) -> None:
        if seq_id in self.run.shadows:
            possible = self.run.manager.can_append(seq_id, len(tokens))
            try:
                self.run.append(seq_id, tokens)
            except OutOfBlocks:
                assert not possible
            else:
                assert possible

    @rule(seq_id=sequences, share=st.floats(0, 1))
    def commit(self, seq_id: int, share: float) -> None:
        if seq_id in self.run.shadows:
            self.run.commit(seq_id, int(share * len(self.run.shadows[seq_id].tokens)))

    @rule(target=sequences, seq_id=sequences)
    def fork(self, seq_id: int) -> int:
        return self.run.fork(seq_id) if seq_id in self.run.shadows else -1

    @rule(seq_id=sequences, share=st.floats(0, 1))
    def truncate(self, seq_id: int, share: float) -> None:
        if seq_id in self.run.shadows:
            self.run.truncate(seq_id, int(share * len(self.run.shadows[seq_id].tokens)))

    @rule(seq_id=consumes(sequences))
    def end(self, seq_id: int) -> None:
        if seq_id in self.run.shadows:
            self.run.end(seq_id)

    @precondition(lambda self: hasattr(self, "run"))
    @invariant()
    def every_rule_holds(self) -> None:
        self.run.check()
        assert broken_rules(self.run.manager) == []

    def teardown(self) -> None:
        if hasattr(self, "run"):
            self.run.finish()


TestShortSequences = ShortSequences.TestCase
TestShortSequences.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True
)

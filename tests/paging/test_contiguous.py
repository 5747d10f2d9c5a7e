"""One piece of memory per sequence: first hole that fits, joined again when it is given back."""

import random
from itertools import pairwise

import pytest

from kvlab.errors import CacheFull, InvalidArgument, OutOfBlocks
from kvlab.paging.contiguous import ContiguousManager


def test_everybody_reserves_the_longest_sequence_allowed() -> None:
    manager = ContiguousManager(100, max_seq_len=32)
    for seq_id in "abc":
        manager.allocate(seq_id, [1, 2, 3])
    assert (manager.num_free, manager.can_allocate(1)) == (4, False)
    with pytest.raises(OutOfBlocks, match="seq_id='d': needs 32 blocks, has 4"):
        manager.allocate("d", 1)
    assert manager.slot_mapping("b", 1, 3) == [33, 34]


def test_free_memory_in_pieces_can_be_too_little_although_it_is_enough() -> None:
    manager = ContiguousManager(40, max_seq_len=10)
    for seq_id in "abcd":
        manager.allocate(seq_id, 1)
    manager.free("a")
    manager.free("c")
    wide = ContiguousManager(40, 20, policy="exact", final_length=lambda seq_id: 20)
    wide.holes, wide.reservations = manager.holes, manager.reservations
    assert (wide.num_free, wide.can_allocate(1)) == (20, False)
    manager.free("b")
    wide.holes = manager.holes
    assert (wide.holes, wide.can_allocate(1)) == ([(0, 30)], True)


def test_a_sequence_that_outgrows_its_reservation_is_told_so() -> None:
    manager = ContiguousManager(40, max_seq_len=10)
    manager.allocate("a", 9)
    manager.append("a")
    assert not manager.can_append("a")
    with pytest.raises(CacheFull, match="all 10 slots"):
        manager.append("a")
    with pytest.raises(InvalidArgument, match="number of tokens=11"):
        manager.allocate("b", 11)


def test_a_fork_copies_every_token() -> None:
    manager = ContiguousManager(40, max_seq_len=10)
    manager.allocate("a", 3)
    manager.fork("a", "b")
    assert manager.copies() == [(0, 10), (1, 11), (2, 12)]
    assert (manager.copies(), manager.num_used) == ([], 20)


@pytest.mark.parametrize("policy", ["max", "pow2", "exact"])
def test_holes_and_reservations_never_overlap_and_are_all_the_memory(policy: str) -> None:
    rng = random.Random(5)
    final = {number: rng.randint(1, 30) for number in range(2_000)}
    manager = ContiguousManager(200, 32, policy=policy, final_length=final.__getitem__)
    refused = 0
    for number in range(2_000):
        if rng.random() < 0.4 and manager.reservations:
            manager.free(rng.choice(list(manager.reservations)))
        try:
            manager.allocate(number, rng.randint(1, final[number]))
        except OutOfBlocks:
            refused += 1
            assert not manager.can_allocate(1, seq_id=number)
        held = [(r.start, r.length) for r in manager.reservations.values()]
        pieces = sorted([*held, *manager.holes])
        assert sum(length for _, length in pieces) == 200
        assert all(sum(a) == b[0] for a, b in pairwise(pieces))
        assert all(sum(a) < b[0] for a, b in pairwise(manager.holes))
    assert 0 < refused < 2_000
    for seq_id in list(manager.reservations):
        manager.free(seq_id)
    assert manager.holes == [(0, 200)]


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("num_slots", {"num_slots": 0}),
        ("max_seq_len", {"max_seq_len": -3}),
        ("policy", {"policy": "best"}),
        ("final_length", {"policy": "exact"}),
    ],
)
def test_bad_settings_are_named(argument: str, options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match=argument):
        ContiguousManager(**{"num_slots": 10, "max_seq_len": 5, **options})


def test_an_unknown_sequence_is_named() -> None:
    manager = ContiguousManager(10, 5)
    for call in (manager.free, manager.append, manager.num_tokens):
        with pytest.raises(InvalidArgument, match="seq_id='x'"):
            call("x")

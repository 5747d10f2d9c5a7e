"""One stream through two allocators: nothing is lost, and every step adds up."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.errors import InvalidArgument
from kvlab.paging import BlockManager, ContiguousManager
from kvlab.paging.block_sizes import block_size_cost
from kvlab.paging.pieces import pieces_of
from kvlab.paging.rules import broken_rules
from kvlab.paging.stream import StreamStep, make_stream, run_stream

LONGEST = 48


def run(kind: str, slots: int, seed: int) -> list[StreamStep]:
    stream = make_stream(12, mean_prompt=12, mean_output=9, longest=LONGEST, seed=seed)
    final = {request.number: request.final_length for request in stream}
    if kind == "blocks":
        return [*run_stream(BlockManager(slots // 4, 4, prefix_caching=False), stream)]
    one = ContiguousManager(slots, LONGEST, policy=kind, final_length=final.__getitem__)
    return [*run_stream(one, stream)]


@pytest.mark.parametrize("kind", ["max", "pow2", "exact", "blocks"])
def test_every_request_is_served_and_every_token_written(kind: str) -> None:
    stream = make_stream(12, mean_prompt=12, mean_output=9, longest=LONGEST, seed=1)
    last = run(kind, 128, 1)[-1]
    assert (last.finished, last.running, last.waiting) == (12, (), ())
    assert last.tokens_written == sum(request.output_tokens for request in stream)
    assert last.use.free == last.use.num_slots


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 500), kind=st.sampled_from(["max", "pow2", "exact", "blocks"]))
def test_the_slots_of_every_step_add_up_and_pieces_never_overlap(seed: int, kind: str) -> None:
    for step in run(kind, 96, seed):
        use = step.use
        parts = use.used + use.reserved + use.internal + use.external + use.idle + use.free
        assert parts == use.num_slots
        assert use.used == sum(piece.filled for piece in step.pieces)
        assert use.reserved == sum(piece.coming for piece in step.pieces)
        ends = sorted((piece.start, piece.start + piece.length) for piece in step.pieces)
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))
        assert not set(step.running) & set(step.waiting)


def test_a_small_pool_of_blocks_preempts_and_still_finishes() -> None:
    stream = make_stream(6, mean_prompt=10, mean_output=30, spread=0, every=1)
    manager = BlockManager(11, 4, prefix_caching=False)
    steps = [*run_stream(manager, stream)]
    assert steps[-1].preempted > 0 and steps[-1].finished == 6
    assert steps[-1].tokens_written == 6 * 30  # what was thrown away is not counted
    assert broken_rules(manager) == [] and manager.num_used == 0


def test_what_can_never_fit_ends_the_run_with_the_request_waiting() -> None:
    stream = make_stream(2, mean_prompt=40, mean_output=5, spread=0)
    last = [*run_stream(BlockManager(4, 4), stream)][-1]
    assert last.finished == 0 and last.waiting[0] == 0


def test_a_shared_block_is_one_piece_with_all_its_owners() -> None:
    manager = BlockManager(8, 4)
    manager.allocate(0, 6)
    manager.fork(0, 1)
    assert [piece.owners for piece in pieces_of(manager)] == [(0, 1), (0, 1)]
    manager.append(1)
    assert [piece.owners for piece in pieces_of(manager)] == [(0, 1), (0,), (1,)]


def test_lengths_keep_to_the_longest_and_a_wrong_spread_is_named() -> None:
    stream = make_stream(200, mean_prompt=40, mean_output=40, longest=60, spread=1.5)
    assert max(request.final_length for request in stream) <= 60
    assert min(request.output_tokens for request in stream) >= 1
    with pytest.raises(InvalidArgument, match="spread=9"):
        make_stream(3, mean_prompt=4, mean_output=4, spread=9)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20), st.sampled_from([1, 16, 64]))
@settings(max_examples=20, deadline=None)
def test_the_cost_of_a_block_size_is_what_a_manager_takes(lens: list[int], size: int) -> None:
    manager = BlockManager(20 * 300, size, prefix_caching=False)
    for number, tokens in enumerate(lens):
        manager.allocate(number, tokens)
    cost = block_size_cost(lens, size, bytes_per_token_layer_keys=2)
    taken = manager.num_used * size
    assert cost.wasted == pytest.approx(1 - sum(lens) / taken)
    assert cost.table_entries == pytest.approx(manager.num_used / len(lens))

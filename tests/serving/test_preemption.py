"""When the pool is full: who gives way, what it costs, and that everybody still ends."""

import pytest

from kvlab.serving import events
from kvlab.serving.plan import SWAP_IN, SWAP_OUT
from kvlab.serving.request import Request, prompt


def test_the_last_in_order_gives_way_even_when_it_is_the_one_that_asks(drive) -> None:
    served = drive(num_blocks=4, block_size=4)
    served.scheduler.add(Request(0, 7, 6))
    served.scheduler.add(Request(1, 7, 6))
    while not served.said(events.PREEMPTED):
        plan = served.step()  # `step` checks that nobody is both in the batch and preempted
    assert [seq.name for seq in plan.preempted] == [(1, 0)]
    assert [name for name, _ in served.plans[-1]] == [(0, 0)]
    served.run()
    assert served.ended[1, 0].num_computed == 12


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("num_blocks", [6, 5, 4])
def test_each_preemption_counts_exactly_the_tokens_computed_again(
    drive, num_blocks: int, caching: bool
) -> None:
    served = drive(num_blocks, block_size=4, prefix_caching=caching)
    for number in range(3):
        served.scheduler.add(prompt(number, range(100 * number, 100 * number + 5), 8))
    served.run()
    assert {(s.end_reason, s.num_computed) for s in served.ended.values()} == {("length", 12)}
    counts = served.scheduler.counts
    lost = sum(event.tokens for event in served.said(events.PREEMPTED))
    resumed = served.said(events.RESUMED)
    assert len(resumed) == counts.preemptions > 0
    assert counts.recomputed_tokens == lost - sum(event.tokens for event in resumed)
    needed = 3 * 12  # positions of all sequences, each computed once
    decoded = sum(n for plan in served.plans for _, n in plan) - counts.prefill_tokens
    assert counts.prefill_tokens + decoded == needed + counts.recomputed_tokens
    if not caching:
        assert counts.recomputed_tokens == lost


def test_a_preempted_sequence_finds_its_own_blocks_again(drive) -> None:
    served = drive(num_blocks=5, block_size=4)
    served.scheduler.add(prompt(0, range(4), 9))
    served.scheduler.add(prompt(1, range(50, 61), 3))
    served.run()
    (resumed,) = [event for event in served.said(events.RESUMED) if event.request_id == 1]
    assert resumed.tokens % 4 == 0 and served.ended[1, 0].num_computed == 13


def test_swapped_blocks_go_out_and_come_back_once_and_nothing_is_recomputed(drive) -> None:
    served = drive(num_blocks=5, block_size=4, preemption="swap", prefix_caching=False)
    for number in range(3):
        served.scheduler.add(Request(number, 7, 9))
    moves = []
    while served.scheduler.has_work:
        moves += served.step().moves
    counts = served.scheduler.counts
    assert counts.preemptions > 0 and counts.recomputed_tokens == 0
    out = [move.target for move in moves if move.kind == SWAP_OUT]
    back = [move.source for move in moves if move.kind == SWAP_IN]
    assert len(out) == counts.swapped_out_blocks == counts.swapped_in_blocks == len(back)
    assert sorted(out) == sorted(back)
    assert served.scheduler.memory.host.num_used == 0
    assert {seq.end_reason for seq in served.ended.values()} == {"length"}


def test_a_full_host_makes_a_victim_recompute(drive) -> None:
    served = drive(num_blocks=5, block_size=4, preemption="swap", host_blocks=1)
    for number in range(3):
        served.scheduler.add(Request(number, 7, 9))
    served.run()
    assert {event.note for event in served.said(events.PREEMPTED)} == {"recompute"}
    assert served.scheduler.counts.swapped_out_blocks == 0


def test_blocks_of_an_aborted_swapped_sequence_leave_the_host(drive) -> None:
    served = drive(num_blocks=4, block_size=4, preemption="swap")
    for number in range(2):
        served.scheduler.add(Request(number, 7, 9))
    while not served.said(events.PREEMPTED):
        served.step()
    assert served.scheduler.memory.host.num_used > 0
    served.scheduler.abort(1)
    assert served.scheduler.memory.host.num_used == 0
    served.run()
    assert served.ended[0, 0].end_reason == "length"


def test_a_swap_brings_back_only_what_is_not_found_in_the_pool(drive) -> None:
    served = drive(num_blocks=8, block_size=4, preemption="swap")
    served.scheduler.add(prompt(0, range(8), 20))
    served.scheduler.add(prompt(1, range(8), 20))  # the same first block
    moves = []
    while served.scheduler.has_work:
        moves += served.step().moves
    out = [move for move in moves if move.kind == SWAP_OUT]
    back = [move for move in moves if move.kind == SWAP_IN]
    assert 0 < len(back) < len(out)
    assert {seq.num_computed for seq in served.ended.values()} == {27}


def test_samples_share_the_prompt_and_copy_only_its_part_full_block(drive) -> None:
    served = drive(num_blocks=16, block_size=4)
    served.scheduler.add(Request(0, 6, 5, num_samples=3))
    served.step()
    assert served.manager.num_used == 2  # all three hold the same two blocks
    served.step()
    assert served.manager.stats().copied_blocks == 2  # the last owner writes in place
    assert served.manager.num_used == 1 + 3
    served.run()
    assert sorted(served.ended) == [(0, 0), (0, 1), (0, 2)]
    assert [event.sample for event in served.said(events.FORKED)] == [1, 2]


def test_the_victims_of_one_that_outgrows_the_pool_get_its_room_at_once(drive) -> None:
    served = drive(num_blocks=6, block_size=4)
    served.scheduler.add(Request(0, 24, 2, num_samples=3))  # each would need a seventh block
    served.scheduler.add(Request(1, 24, 1))
    served.run()
    reasons = {name: seq.end_reason for name, seq in served.ended.items()}
    assert reasons == {(0, i): "outgrown" for i in range(3)} | {(1, 0): "length"}
    assert [] not in served.plans

"""The order of things: budget, chunks, admission, refusals, ends."""

import pytest

from kvlab.errors import InvalidArgument
from kvlab.serving import events
from kvlab.serving.request import Request, prompt


def test_six_prompt_tokens_and_ten_new_ones_take_ten_steps_and_fifteen_positions(drive) -> None:
    served = drive()
    seq = served.scheduler.add(Request(1, 6, 10))
    served.run()
    assert (seq.num_emitted, seq.num_computed, seq.end_reason) == (10, 15, "length")
    assert served.scheduler.counts.steps == 10  # one prefill, nine decodes
    assert served.manager.num_free == served.manager.num_blocks


def test_decodes_come_out_of_the_budget_before_prompts(drive) -> None:
    served = drive(max_batched_tokens=8, max_running=4)
    served.scheduler.add(Request(1, 3, 10))
    served.step()
    served.scheduler.add(Request(2, 20, 3))
    for _ in range(3):
        served.step()
    sizes = [[n for _, n in plan] for plan in served.plans]
    assert sizes[1:4] == [[1, 7], [1, 7], [1, 6]]


def test_without_chunks_a_prompt_longer_than_the_budget_gets_a_step_for_itself(drive) -> None:
    served = drive(max_batched_tokens=16, max_running=4, chunked_prefill=False)
    for number, tokens in enumerate((10, 12)):
        served.scheduler.add(Request(number, tokens, 2))
    served.step()
    assert served.plans == [[((0, 0), 10)]]  # 12 more would not fit into 16, and are not cut
    served.step()
    assert served.plans[1] == [((0, 0), 1), ((1, 0), 12)]


def test_nobody_overtakes_the_head_of_the_queue(drive) -> None:
    served = drive(num_blocks=8, block_size=4)
    for number, tokens in enumerate((20, 16, 4)):  # 5, 4 and 1 blocks
        served.scheduler.add(Request(number, tokens, 2))
    served.step()
    assert [name for name, _ in served.plans[0]] == [(0, 0)]
    served.run()
    assert [event.request_id for event in served.said(events.ADMITTED)] == [0, 1, 2]


def test_a_lower_priority_number_is_admitted_first_and_preempted_last(drive) -> None:
    served = drive(num_blocks=6, block_size=4, policy="priority")
    for number, urgency in enumerate((5, 0, 3)):
        served.scheduler.add(Request(number, 7, 9, priority=urgency))
    served.run()
    assert [event.request_id for event in served.said(events.ADMITTED)] == [1, 2, 0]
    assert {event.request_id for event in served.said(events.PREEMPTED)} <= {2, 0}
    assert {seq.end_reason for seq in served.ended.values()} == {"length"}


def test_at_most_max_running_sequences_run_and_samples_count_each(drive) -> None:
    served = drive(max_running=3, max_batched_tokens=64)
    served.scheduler.add(Request(0, 5, 4, num_samples=2))
    served.scheduler.add(Request(1, 5, 4, num_samples=2))
    served.run()
    assert max(len(plan) for plan in served.plans) == 2
    assert len(served.ended) == 4


@pytest.mark.parametrize(
    ("request_", "limits", "said"),
    [
        (Request(7, 33, 1), {}, "request 7: needs 9 blocks, has 8"),
        (Request(7, 32, 2), {"reserve_output": True}, "request 7: needs 9 blocks, has 8"),
        (Request(7, 20, 5), {"max_seq_len": 23}, "request 7: needs 24 positions, has 23"),
        (
            Request(7, 4, 1, num_samples=4),
            {"max_running": 3},
            "request 7: needs to run 4 samples, may run 3",
        ),
        (Request(7, 4, 1), {"max_waiting": 0}, "request 7: the queue is full: 0 wait already"),
    ],
)
def test_what_can_never_run_is_refused_at_the_door(drive, request_, limits, said) -> None:
    served = drive(num_blocks=8, block_size=4, **limits)
    seq = served.scheduler.add(request_)
    assert (seq.end_reason, seq.error) == ("refused", said)
    assert not served.scheduler.has_work
    assert served.said(events.REFUSED)[0].note == said


def test_one_that_outgrows_the_pool_ends_with_its_error_and_the_others_finish(drive) -> None:
    served = drive(num_blocks=4, block_size=4)
    served.scheduler.add(Request(0, 6, 3))
    served.scheduler.add(Request(1, 8, 100))
    served.scheduler.add(Request(2, 5, 4))
    served.run()
    reasons = {number: seq.end_reason for (number, _), seq in served.ended.items()}
    assert reasons == {0: "length", 1: "outgrown", 2: "length"}
    error = served.ended[1, 0].error
    assert error == "request 1: outgrew the pool at 17 tokens: needs 5 blocks, has 4"


def test_a_request_is_aborted_wherever_it_is(drive) -> None:
    served = drive(num_blocks=8, block_size=4)
    for number in range(3):
        served.scheduler.add(Request(number, 14, 9))
    served.step()
    assert len(served.scheduler.running) == 2 and len(served.scheduler.waiting) == 1
    assert served.scheduler.abort(2) == 1  # waits
    assert served.scheduler.abort(0) == 1  # runs
    assert served.scheduler.abort(99) == 0
    assert not served.scheduler.waiting and len(served.scheduler.running) == 1
    served.run()
    reasons = {number: seq.end_reason for (number, _), seq in served.ended.items()}
    assert reasons == {0: "aborted", 1: "length", 2: "aborted"}
    assert served.manager.num_free == 8


def test_the_reserve_admits_only_what_needs_no_preemption(drive) -> None:
    requests = [Request(i, 5 + i, 12 - i, num_samples=1 + i % 2) for i in range(9)]
    preempted = {}
    for reserve in (False, True):
        served = drive(num_blocks=12, block_size=4, reserve_output=reserve)
        for request in requests:
            served.scheduler.add(request)
        served.run()
        assert {seq.end_reason for seq in served.ended.values()} == {"length"}
        preempted[reserve] = served.scheduler.counts.preemptions
    assert preempted[False] > 0 and preempted[True] == 0


def test_a_prefix_is_looked_up_when_it_is_used_not_when_it_was_queued(drive) -> None:
    served = drive(num_blocks=4, block_size=4)
    served.scheduler.add(prompt(0, range(8), 1))
    served.run()
    assert served.manager.match_prefix([*range(8), 50]) == 8  # cached, and idle
    served.scheduler.add(prompt(1, range(100, 116), 1))  # evicts all of it
    served.scheduler.add(prompt(2, [*range(8), 50], 2))
    assert served.manager.match_prefix([*range(8), 50]) == 8
    served.run()
    found = {event.request_id: event.tokens for event in served.said(events.ADMITTED)}
    assert found == {0: 0, 1: 0, 2: 0}


def test_a_whole_cached_prompt_leaves_one_block_to_compute(drive) -> None:
    served = drive(num_blocks=16, block_size=4)
    for number in range(2):
        served.scheduler.add(prompt(number, range(8), 3))
        served.run()
    assert served.said(events.ADMITTED)[1].tokens == 4
    assert served.scheduler.counts.prefix_hit_tokens == 4
    assert served.scheduler.counts.prefix_query_tokens == 16


def test_tenants_with_different_salts_share_nothing(drive) -> None:
    served = drive()
    for number, salt in enumerate(("ann", "bob", "ann")):
        served.scheduler.add(prompt(number, range(20), 1, salt=salt))
        served.run()
    assert [event.tokens for event in served.said(events.ADMITTED)] == [0, 0, 16]


def test_a_number_in_use_and_a_wrong_number_of_tokens_are_named(drive) -> None:
    served = drive()
    served.scheduler.add(Request(3, 4, 4))
    with pytest.raises(InvalidArgument, match="request_id=3: a request with this number"):
        served.scheduler.add(Request(3, 4, 4))
    plan = served.scheduler.schedule()
    with pytest.raises(InvalidArgument, match="number of tokens=2: must be 1"):
        served.scheduler.complete(plan, [1, 2])

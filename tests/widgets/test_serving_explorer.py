"""The serving explorer: its numbers are those of the simulation, and walking costs little."""

import pytest

from kvlab.serving.watch import BLOCKS, NOBODY
from kvlab.widgets.serving_explorer import serving_explorer, serving_frame
from kvlab.widgets.serving_run import REQUESTS, STEPS, fleet, serving_run


def number(text: str) -> float:
    return float(text.split()[0].replace(",", ""))


def test_the_numbers_are_those_of_the_run() -> None:
    show = serving_explorer()
    run = serving_run(16, 1024, 2048, "recompute", False)
    assert run.totals.items() <= show.numbers.items()
    assert number(show.numbers["answered"]) == REQUESTS
    assert "0 run, 0 wait" in show.frame.event and show.error.value == ""


def test_every_request_is_answered_or_named() -> None:
    run = serving_run(16, 8192, 512, "recompute", False)
    ends = [number(run.totals[k]) for k in ("answered", "refused", "outgrew the pool")]
    assert sum(ends) == REQUESTS and min(ends) > 0


def test_a_larger_pool_ends_the_queue_and_the_preemptions() -> None:
    """What the chapter lets the learner find out, at 32 arrivals a second."""
    runs = [serving_run(32, 1024, 2**n, "recompute", False) for n in range(9, 15)]
    again = [number(run.totals["computed again"]) for run in runs]
    queue = [max(seen.waiting for seen in run.looks) for run in runs]
    assert again[0] > 0 and again[-1] == 0
    assert queue == sorted(queue, reverse=True) and queue[-1] < 5 < queue[0]
    small = [seen.waits_for for seen in runs[0].looks]
    assert small.count(BLOCKS) > STEPS / 2


def test_short_prompts_at_64_a_second_lack_nothing() -> None:
    run = serving_run(64, 128, 2048, "recompute", False)
    assert {seen.waits_for for seen in run.looks} == {NOBODY}
    assert run.looks[-1].preemptions == 0


def test_room_for_the_stated_answer_lowers_the_batch_and_ends_preemption() -> None:
    show = serving_explorer()
    show.set(rate=32)
    before = number(show.numbers["sustained batch"])
    assert show.controls["reserve_output"].options[1][1] is True
    show.controls["reserve_output"].value = True
    assert number(show.numbers["sustained batch"]) < before
    assert show.numbers["computed again"] == "0 tokens"
    show.reset()
    assert show.values["rate"] == 16


def test_swapping_moves_blocks_and_computes_nothing_again() -> None:
    totals = serving_run(32, 1024, 1024, "swap", False).totals
    assert number(totals["swapped out"]) > 0 and number(totals["computed again"]) == 0


@pytest.mark.parametrize("step", [0, 1, STEPS // 2, STEPS - 1])
@pytest.mark.parametrize("num_blocks", [256, 16384])
def test_every_corner_draws_one_picture(step: int, num_blocks: int) -> None:
    for rate, prompt_tokens in ((1, 128), (64, 8192)):
        frame = serving_frame(step, rate, prompt_tokens, num_blocks, "swap", True)
        assert frame.picture.count("<svg") == 1


def test_walking_through_time_simulates_nothing() -> None:
    show = serving_explorer()
    before = serving_run.cache_info().misses
    for _ in range(20):
        show.back()
    assert serving_run.cache_info().misses == before
    assert show.controls["step"].value == STEPS - 21


def test_the_pool_of_the_card_is_larger_than_all_that_is_offered() -> None:
    assert max(value for _, value in serving_explorer().controls["num_blocks"].options) <= (
        fleet().num_blocks
    )

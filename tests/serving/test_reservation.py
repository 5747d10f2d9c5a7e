"""The same traffic with a piece for the longest answer each, and with blocks."""

from __future__ import annotations

import pytest

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.errors import InvalidArgument
from kvlab.paging.waste import blocks_for
from kvlab.serving.reservation import Served, most_at, serve
from kvlab.serving.workloads import make_requests, poisson_arrivals

MODEL, CARD = Deployment.of("llama-2-13b"), Device.of("A100 40GB")
SLOTS, LONGEST = 8192, 1024


def served(
    block_size: int, *, prompt: str = "100", output: str = "60", rate: float = 2.0
) -> Served:
    requests = make_requests(
        40, prompt_tokens=prompt, output_tokens=output, arrivals=poisson_arrivals(rate, 1), seed=1
    )
    sizes = {"num_slots": SLOTS, "max_seq_len": LONGEST, "block_size": block_size}
    return serve(requests, MODEL, CARD, **sizes)


@pytest.mark.parametrize("block_size", [LONGEST, 64, 16])
def test_waste_is_the_formula_summed_over_the_life_of_a_request(block_size: int) -> None:
    """One after the other, each step lasts the same: waste can be summed by hand."""
    made = served(block_size, rate=0.001)
    lengths = range(100, 160)
    taken = sum(blocks_for(n, block_size) * block_size for n in lengths)
    assert made.wasted_share == pytest.approx(1 - sum(lengths) / taken, abs=0.03)
    assert made.sustained_batch == pytest.approx(1)


def test_a_piece_each_never_runs_more_than_fit() -> None:
    crowded = served(LONGEST, rate=50)
    assert crowded.num_blocks == 8
    assert 7 < crowded.sustained_batch <= 8


def test_blocks_run_a_larger_batch_and_more_tokens_from_the_same_memory() -> None:
    one, paged = served(LONGEST, rate=50), served(16, rate=50)
    assert paged.sustained_batch > 2 * one.sustained_batch
    assert paged.tokens_per_second > 1.5 * one.tokens_per_second
    assert paged.seconds_per_token < one.seconds_per_token
    assert paged.wasted_share < 0.1 < one.wasted_share
    assert one.finished == paged.finished == 40


def test_where_memory_is_not_short_blocks_change_nothing_but_the_waste() -> None:
    one, paged = served(LONGEST, rate=0.2), served(16, rate=0.2)
    assert one.tokens_per_second == pytest.approx(paged.tokens_per_second)
    assert one.wasted_share > 10 * paged.wasted_share


def test_what_may_grow_too_long_is_refused_by_both() -> None:
    made = [served(size, prompt="1000", output="60") for size in (LONGEST, 16)]
    assert [(s.refused, s.finished) for s in made] == [(40, 0), (40, 0)]


def test_a_memory_without_room_for_one_piece_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="num_slots=512"):
        serve([], MODEL, CARD, num_slots=512, max_seq_len=1024, block_size=16)


def test_the_rate_that_is_kept_is_the_last_before_the_first_miss() -> None:
    def by_rate(rate: float) -> Served:
        return Served(16, 1, 0, rate, rate, {1: 0.1, 2: 0.9, 3: 0.2}[rate], 0, 1, 0)

    assert most_at(0.5, [1, 2, 3], by_rate)[0] == 1
    assert most_at(0.05, [1, 2], by_rate) is None

"""Every number and name in the prose of chapter 10, checked against the functions."""

import re
from pathlib import Path

import pytest

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.preemption import RECOMPUTE, SWAP, preemption_cost
from kvlab.arithmetic.roofline import Device
from kvlab.course.bank import select_questions
from kvlab.course.claims import find_claim
from kvlab.serving.chat import Chat
from kvlab.serving.fleet import plan_fleet
from kvlab.serving.limits import Limits
from kvlab.serving.loop import ServingLoop
from kvlab.serving.simulator import simulate
from kvlab.serving.workloads import burst_arrivals, make_requests, poisson_arrivals

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "10_serving_under_pressure.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))
MIXED = {"prompt_tokens": "uniform:200:800", "output_tokens": "uniform:100:500"}
LONG_TAIL = {"prompt_tokens": "lognormal:1000:0.8", "output_tokens": "lognormal:300:0.7"}
CARD = plan_fleet("llama-3.1-8b", gpu="H100", typical_tokens=1300)
CLOCK = CARD.clock()
RATE = 20
"""Arrivals a second at the servers of sections 5 and 8."""


def served(
    sizes: dict[str, object],
    rate: float,
    num_blocks: int,
    limits: Limits | None = None,
    *,
    count: int = 800,
    **options: object,
) -> ServingLoop:
    traffic = make_requests(
        count, **sizes, arrivals=poisson_arrivals(rate, seed=1), seed=1, **options
    )  # type: ignore[arg-type]
    return simulate(traffic, CLOCK, num_blocks=num_blocks, limits=limits)


def median_ttft(loop: ServingLoop) -> float:
    found = loop.metrics.ttft.percentile(50)
    assert found is not None
    return found


def test_half_of_the_first_tokens_come_within_some_20_ms_at_20_a_second() -> None:
    loop = served(LONG_TAIL, 20, CARD.num_blocks, count=1500)
    assert median_ttft(loop) == pytest.approx(0.020, abs=0.001)
    assert "20 a second half of the first tokens come within some 20 ms" in PROSE


def test_past_saturation_the_queue_grows_and_the_throughput_does_not() -> None:
    calm, rush, flood = (
        served(LONG_TAIL, rate, CARD.num_blocks, count=1500) for rate in (20, 40, 50)
    )
    assert median_ttft(flood) > 100 * median_ttft(calm)
    assert flood.metrics.tokens_per_second < 1.05 * rush.metrics.tokens_per_second


def test_forbidding_preemption_lengthens_the_wait_and_lowers_the_throughput() -> None:
    free, full = (served(MIXED, RATE, 1500, Limits(reserve_output=r)) for r in (False, True))
    assert free.scheduler.counts.preemptions > 100 and full.scheduler.counts.preemptions == 0
    assert median_ttft(full) > 1.5 * median_ttft(free)
    assert full.metrics.tokens_per_second < free.metrics.tokens_per_second
    claim = find_claim("preemption-means-cache-shortage")
    assert "preempts hundreds of times beats one that never does" in claim.condition


def test_answers_have_300_tokens_and_reserving_what_is_stated_costs_more_than_half() -> None:
    loop = served(MIXED, RATE, 1500, max_new_tokens=2000)
    counts = loop.scheduler.counts
    assert counts.generation_tokens / 800 == pytest.approx(300, rel=0.02)
    stated = served(MIXED, RATE, 1500, Limits(reserve_output=True), max_new_tokens=2000)
    assert stated.metrics.tokens_per_second < 0.5 * loop.metrics.tokens_per_second
    assert "300 tokens on average, users state 2,000" in TEXT


def test_a_bounded_queue_does_what_giving_way_does_not() -> None:
    def burst(limits: Limits) -> ServingLoop:
        arrivals = burst_arrivals(10, at=20, size=300, seed=1)
        traffic = make_requests(900, **MIXED, arrivals=arrivals, seed=1)  # type: ignore[arg-type]
        return simulate(traffic, CARD.clock(swaps=True), num_blocks=4000, limits=limits)

    loops = [burst(rules) for rules in (Limits(), Limits(preemption="swap"))]
    plain, swap = (loop.metrics.ttft.percentile(95) or 0 for loop in loops)
    assert round(plain) == 7 and swap == pytest.approx(plain, rel=0.05)
    bounded = burst(Limits(max_waiting=50)).metrics
    assert (bounded.ttft.percentile(95) or 0) < 0.5 and bounded.requests["refused"] > 100
    # the bound holds at the door: of 50 let into the queue, 17 are admitted in the same step
    assert loops[0].metrics.peak_waiting == 300 - 17 and bounded.peak_waiting == 50 - 17
    assert bounded.requests["refused"] == 300 - 50
    assert '"most waiting 33" with a queue of 50' in PROSE and "let 17 of the 50 in" in PROSE
    calm = served(MIXED, 10, 4000)
    assert calm.metrics.peak_waiting == calm.scheduler.counts.preemptions == 0


def test_of_the_chat_pools_only_the_smallest_preempts_and_hits_fall_with_the_pool() -> None:
    rates, preempted = [], []
    for num_blocks in (500, 1000, 2000, 4000):
        chat = Chat(60, 4, system_tokens=400, message_tokens=100, output_tokens=150,
                    arrivals=poisson_arrivals(6, seed=1), seed=1)  # fmt: skip
        loop = simulate(chat, CLOCK, num_blocks=num_blocks, follow_up=chat.follow_up)
        rates.append(loop.scheduler.counts.prefix_hit_rate)
        preempted.append(loop.scheduler.counts.preemptions)
    assert rates == sorted(rates) and rates[-1] > 1.5 * rates[0]
    assert preempted[0] > 0 and not any(preempted[1:])


def test_one_rate_holds_for_the_three_servers_and_other_rates_are_said() -> None:
    assert "RATE = [], {}, 20" in TEXT and "**20 requests a second** arrive" in PROSE
    rates = re.findall(r"_arrivals\((\w+),", TEXT.split('id="diagnose"')[1])
    assert rates == ["RATE", "RATE", "30", "RATE", "6", "10"]
    assert "**30 a second** arrive in place of 20" in PROSE
    assert "6 new conversations a second" in PROSE and "10 requests a second are easy" in PROSE


def test_words_of_the_burst_are_introduced_before_it() -> None:
    order = [PROSE.index(f'<a id="{name}">') for name in ("swap-or-recompute", "idle-blocks")]
    assert order == sorted(order) and order[-1] < PROSE.index('<a id="burst">')


def test_fewer_kv_heads_turn_the_choice_round() -> None:
    new, old = (Deployment.of(m) for m in ("llama-3.1-8b", "huggyllama/llama-7b"))
    assert old.request(1).request_bytes == 4 * new.request(1).request_bytes
    for tokens in (512, 2048):
        assert preemption_cost(new, tokens=tokens, gpu="H100").cheapest == SWAP
        assert preemption_cost(old, tokens=tokens, gpu="H100").cheapest == RECOMPUTE
    assert "keeps 32 KV heads in place of 8" in PROSE


def test_an_h100_reads_at_the_rate_that_the_prose_says() -> None:
    assert Device.of("H100").bytes_per_second == 3350e9
    assert "An H100 reads its memory at 3,350 GB/s" in TEXT
    assert (
        "an H100 is 52 times slower"
        in next(
            q for q in select_questions(chapter="10") if q.id == "10-under-pressure"
        ).in_two_minutes
    )  # type: ignore[attr-defined]


def test_five_came_in_because_their_prompts_fit() -> None:
    lengths = [24 + 3 * (i % 4) for i in range(12)]
    blocks = [-(-n // 8) for n in lengths]
    assert sum(blocks[:5]) <= 20 < sum(blocks[:6])
    assert "five came in at step 1" in PROSE and "20 blocks of 8 tokens" in PROSE


def test_the_inline_scheduler_has_at_most_fifteen_lines() -> None:
    body = TEXT.split("def serve(", 1)[1].split("# %% [markdown]")[0]
    assert len([line for line in ("def serve(" + body).splitlines() if line.strip()]) <= 15
    assert "in fifteen lines" in PROSE

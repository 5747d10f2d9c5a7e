"""Every number and name in the prose of chapter 04, checked against the functions."""

from pathlib import Path

import pytest

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import (
    Device,
    crossover_batch,
    seconds_to_ship,
    time_decode,
    time_prefill,
)
from kvlab.arithmetic.roofline_work import decode_work
from kvlab.course.bank import select_questions

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "04_prefill_and_decode.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))
EIGHT, H100 = Deployment.of("llama-3.1-70b", tp=8), Device.of("H100")


def test_t_tokens_make_t_flops_a_byte_in_16_bit_and_half_of_it_in_float32() -> None:
    for tokens in (1, 4, 128):
        assert 2 * tokens / 2 == tokens and 2 * tokens / 4 == tokens / 2
    assert "**T tokens, 2 FLOPs, over 4 bytes**" in PROSE


def test_ridges_of_the_cards_lie_right_of_a_processors() -> None:
    ridges = [Device.of(g).ridge for g in ("T4", "A100 80GB SXM4", "H100", "H200 SXM")]
    assert min(ridges) > 100
    assert Device.of("H100").ridge == pytest.approx(295, abs=0.5)


def test_the_payload_of_one_step_is_32_times_2_5_gib() -> None:
    (step,) = decode_work(Deployment.of("llama-3.1-70b"), 8192, batch=32)
    assert step.cache_bytes == 32 * 5 * 2**29 == 80 * 2**30
    assert "32 x 2.5 GiB" in PROSE


def test_a_batch_on_an_h100_would_need_hundreds_to_reach_the_ridge() -> None:
    one = Deployment.of("llama-3.1-8b")
    intensities = [
        time_decode(one, H100, context=1, batch=n).stages[0].intensity for n in (100, 400)
    ]
    assert intensities[0] < H100.ridge < intensities[1]


def test_the_example_of_the_explorer_climbs_and_then_stops() -> None:
    one = Deployment.of("llama-3.1-8b")
    places = [
        time_decode(one, H100, context=8192, batch=2**n).stages[0].intensity for n in range(11)
    ]
    assert places[1] / places[0] > 1.8 and places[10] / places[9] < 1.05
    assert max(places) < H100.ridge / 10


def test_the_first_token_does_not_care_about_the_batch_and_tpot_rises() -> None:
    first = time_prefill(EIGHT, H100, prompt_tokens=8192)
    assert first.bound == "compute"
    steps = [time_decode(EIGHT, H100, context=8192, batch=n) for n in (1, 8, 32, 128)]
    assert [s.seconds for s in steps] == sorted(s.seconds for s in steps)
    rates = [s.tokens_per_second for s in steps]
    assert rates == sorted(rates)
    assert round(1000 * steps[2].seconds, 1) == 8.5


def test_the_batches_in_the_questions_and_the_interview_answers_are_the_computed_ones() -> None:
    weights = sum(Deployment.of("llama-3.1-8b").weight_bytes)
    sizes = {"weight_bytes": weights, "bytes_per_token": 131_072}
    assert crossover_batch(**sizes, context=8192) == 15
    said = next(q for q in select_questions(chapter="04") if q.id == "04-two-machines")
    assert "122,500" in said.in_two_minutes and "15 sequences of 8,192" in said.in_two_minutes


def test_the_names_in_the_exercises_are_those_of_the_models() -> None:
    weights = sum(Deployment.of("llama-3.1-8b").weight_bytes)
    assert f"{weights // 2:,} parameters" in PROSE
    assert f"{EIGHT.weight_bytes[0] / 1e9:.2f} GB of weights" in PROSE


def test_the_convention_of_the_weights_is_said_in_the_prose() -> None:
    assert PROSE.count("the input embedding too") >= 2
    assert "for certain" not in PROSE and "a lower bound of what moved" not in PROSE


def test_eight_links_take_an_eighth_of_the_time_of_one() -> None:
    sent = EIGHT.request(8192).request_bytes
    one, many = (seconds_to_ship(sent, link_bytes_per_second=50e9, links=n) for n in (1, EIGHT.tp))
    assert one == pytest.approx(8 * many)


def test_the_gap_can_be_linked_to() -> None:
    assert '<a id="closing-the-gap"></a>' in TEXT

"""Every number and name in the prose of chapter 06, checked against the functions."""

import re
from pathlib import Path

import pytest

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.course.bank import select_questions
from kvlab.course.claims import find_claim
from kvlab.figures.palette import request_letter
from kvlab.paging.waste import blocks_for, mean_length_for, wasted_share
from kvlab.widgets.allocation_race import LONGEST, NUM_SLOTS, first_refusal, race_steps
from kvlab.widgets.block_size_explorer import costs

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "06_paged_allocation.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))


def test_a_slot_of_the_8b_model_is_128_kib() -> None:
    shape = model_shape("llama-3.1-8b")
    sizes = {"num_layers": shape.num_layers, "num_kv_heads": shape.num_kv_heads}
    assert kv_bytes_per_token(**sizes, head_dim=shape.head_dim, bytes_per_element=2) == 128 * 1024
    assert "one of Llama 3.1 8B is 128 KiB in 16 bit" in PROSE


def test_the_three_requests_hold_2600_tokens_in_98304_slots() -> None:
    assert sum((500, 2000, 100)) == 2600 and 3 * 32_768 == 98_304
    assert "2,600 tokens in 98,304 slots" in PROSE
    assert [f"{wasted_share([n], 32_768):.2%}" for n in (500, 2000, 100)] == [
        "98.47%", "93.90%", "99.69%",
    ]  # fmt: skip
    assert f"{wasted_share([500, 2000, 100], 16):.2%}" == "0.91%"
    assert blocks_for(2048, 16) == 128


def test_the_race_is_the_one_that_the_prose_tells_of() -> None:
    assert (NUM_SLOTS, LONGEST) == (1024, 256)
    assert "1,024 slots, at most 256 tokens a request" in TEXT
    runs = []
    for policy in ("max", "pow2", "exact"):
        one, paged = race_steps("a few long, many short", policy, 16)
        runs.append(len(one[first_refusal(one)].running))
    assert runs[0] == NUM_SLOTS // LONGEST
    assert runs[-1] < len(paged[first_refusal(paged)].running)  # "even the exact length"


def test_after_z_come_letters_with_a_number() -> None:
    assert [request_letter(n) for n in (25, 26, 53)] == ["Z", "A2", "B3"]
    assert "after Z comes A2, and B3 is the 54th" in PROSE


def test_waste_is_little_at_16_and_much_at_256_for_short_requests() -> None:
    assert round(mean_length_for(0.04, 16)) == 180
    assert "(`block_size` - 1) / 2 empty slots" in PROSE
    assert mean_length_for(0.04, 256) > 3000


def test_with_mixed_lengths_only_the_mean_counts_and_all_alike_is_special() -> None:
    for spread in ("many short, few long", "spread evenly"):
        for cost in costs(spread, 256)[:7]:  # up to 64
            assert cost.wasted == pytest.approx(cost.expected, abs=0.002)
    assert costs("all alike", 256)[4].wasted == 0 < costs("all alike", 256)[4].expected


def test_the_published_figures_are_those_of_the_claims() -> None:
    least, most = find_claim("waste-60-80").computed()
    assert (round(least, -1), round(most, -1)) == (60, 80)
    assert "60 to 80 % of cache memory wasted" in PROSE and "under 4 % with paging" in PROSE
    assert "2 to 4 times the throughput at the same latency" in PROSE
    for baseline in ("FasterTransformer", "Orca"):
        assert baseline in find_claim("paper-baseline-hf").condition and baseline in PROSE


def test_what_the_prose_says_of_the_simulations_is_what_the_page_shows() -> None:
    space: dict = {}
    exec(_cell("from kvlab.serving.fleet import plan_fleet"), space)
    assert space["fleet"].num_blocks * 16 // 2048 == 7
    eight = space["plan_fleet"]("llama-3.1-8b", gpu="H100", typical_tokens=500)
    made = {
        (longest, size): space["simulate_chat"](eight, 6, size, longest, count=150)
        for longest in (8192, 131_072)
        for size in (longest, 16)
    }
    roomy, paged = made[8192, 8192], made[8192, 16]
    assert roomy.wasted_share > 0.9 and roomy.tokens_per_second == paged.tokens_per_second
    full = made[131_072, 131_072]
    assert full.num_blocks == 3 and "only three requests run at once" in PROSE
    assert full.seconds_per_token > 10 * made[131_072, 16].seconds_per_token


def _cell(marked: str) -> str:
    return next(cell for cell in TEXT.split("# %%") if marked in cell).split("\n", 1)[1]


def test_the_numbers_of_the_interview_answer_are_the_computed_ones() -> None:
    said = next(q for q in select_questions(chapter="06") if q.id == "06-explain-paging")
    shares = [f"{100 * wasted_share([n], 32_768):.2f}" for n in (500, 2000, 100)]
    assert f"{shares[0]}, {shares[1]} and {shares[2]} %" in said.in_two_minutes
    blocks = sum(blocks_for(n, 16) for n in (500, 2000, 100))
    assert f"take {blocks} blocks and {16 * blocks - 2600} slots stay empty" in said.in_two_minutes


def test_the_claims_that_the_course_fixes_are_there() -> None:
    shown = re.findall(r'claim_quiz\("([^"]+)"\)', TEXT)
    assert set(shown) == {
        "prealloc-500-of-32k-waste", "prealloc-2k-of-32k-waste", "prealloc-bars",
        "paged-no-waste-500", "paged-no-waste-100", "paper-baseline-hf",
    }  # fmt: skip
    assert all(find_claim(claim).chapter == "06" for claim in shown)

"""Every number and name in the prose of chapter 08, checked against the functions."""

import re
from pathlib import Path

import pytest
import torch

from kvlab.arithmetic.float8_values import float8_table
from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.arithmetic.quantized_bytes import bits_per_element, compression
from kvlab.cache import make_cache
from kvlab.course.bank import select_questions
from kvlab.course.claims import find_claim
from kvlab.model.load import load_model
from kvlab.model.phases import prefill
from kvlab.model.quality import Bench
from kvlab.model.quality_logits import Tally

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "08_fewer_bits.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))


def test_the_numbers_beside_three_tenths_are_the_ones_named() -> None:
    values = sorted(e.value for e in float8_table("e4m3") if 0.25 <= e.value <= 0.375)
    below = max(value for value in values if value < 0.3)
    above = min(value for value in values if value > 0.3)
    assert (below, above) == (0.28125, 0.3125)
    assert "0.28125, 0.3125 and nothing between" in TEXT


def test_two_rows_of_the_map_are_four_powers_of_two_and_two_bytes_are_no_number() -> None:
    table = float8_table("e4m3")
    for byte in range(16, 80):
        assert table[byte + 16].value == 4 * table[byte].value  # a row has two exponents
    assert sum(entry.value != entry.value for entry in table) == 2
    assert "one row further they are about four times as large" in PROSE


def test_a_step_of_the_group_from_minus_one_to_two() -> None:
    assert pytest.approx(0.1) == 3 / 15 / 2
    assert "reaches from -1 to 2" in TEXT and "3 / 15 / 2" in TEXT


def test_int4_in_groups_of_64_is_not_a_quarter() -> None:
    shape = {"num_kv_heads": 8, "head_dim": 128, "granularity": "group", "q_group_size": 64}
    bits = bits_per_element("int4", head_dim=128, granularity="group", q_group_size=64)
    assert bits == 4.5 and f"{16 / bits:.2f}x" == "3.56x" and '"3.56x"' in TEXT
    ratio = compression("int4", tokens=8192, residual_length=128, **shape)
    assert f"{ratio:.3f}x" == "3.419x" and '"3.419x"' in TEXT
    token = kv_bytes_per_token(num_layers=32, num_kv_heads=8, head_dim=128, bytes_per_element=2)
    assert token == 128 * 1024 and "takes 128 KiB a token in 16 bit" in PROSE


@pytest.fixture(scope="module")
def bench() -> Bench:
    loaded = load_model("tiny", device="cpu", dtype="float32")
    return Bench(loaded, tokens=256, facts=8, num_sequences=4)


@torch.no_grad()
def in_one_pass(bench: Bench, name: str, options: dict) -> Tally:
    """Measure as the chapter does: the context once, the rest in one pass."""
    model, task, tally = bench.loaded.model, bench.task, Tally()
    context = make_cache("growing", num_layers=2)
    prefill(model, task.input_ids[:, : task.context_len], context)
    cache = make_cache(name, num_layers=2, residual_length=0, **options)
    for place, layer in enumerate(context.layers):
        cache.update(*layer.held(), place)
    rest = task.input_ids[:, task.context_len :]
    tally.add(task, model(rest, cache=context), model(rest, cache=cache))
    return tally


@pytest.mark.parametrize(
    ("name", "options"), [("fp8", {}), ("int8", {}), ("int4", {"granularity": "token"})]
)
def test_one_pass_measures_what_token_by_token_does(bench: Bench, name: str, options: dict) -> None:
    tally = in_one_pass(bench, name, options)
    one_by_one = bench.measure(name, residual_length=0, **options)
    assert tally.kl / tally.steps == pytest.approx(one_by_one.kl, rel=0.1, abs=1e-5)
    assert tally.right / tally.graded == one_by_one.recall


def test_what_the_prose_says_about_bits_and_recall_holds_on_tiny(bench: Bench) -> None:
    fine = in_one_pass(bench, "int4", {"granularity": "channel", "q_group_size": 32})
    coarse = in_one_pass(bench, "int4", {"granularity": "tensor"})
    broken = in_one_pass(bench, "int2", {"granularity": "tensor"})
    assert fine.right == fine.graded  # recall alone calls INT4 free
    assert fine.kl / fine.steps > 0.01  # yet the probabilities moved
    assert coarse.kl > 1.5 * fine.kl
    assert broken.right < 0.8 * broken.graded


def test_the_reports_named_in_the_text_are_those_of_the_sources() -> None:
    assert "22 April 2026" in PROSE


def test_the_numbers_of_the_interview_answer_are_the_computed_ones() -> None:
    said = next(q for q in select_questions(chapter="08") if q.id == "08-explain-bits")
    for words in ("4.5 bits", "3.56 times", "3.42 times at 8,192 tokens", "91 % to 13 %"):
        assert words in said.in_two_minutes
    exact = (128 * 16 + 128 * 4.5) / 256
    assert f"{16 / exact:.2f}" == "1.56"  # the card on a context of 256 tokens


def test_the_claims_that_the_course_fixes_are_there() -> None:
    shown = re.findall(r'claim_quiz\("([^"]+)"\)', TEXT)
    fixed = {"int4-quarters", "fp8-always-good-default"}
    assert fixed | {"int8-halves", "fp8-2048-to-1024"} <= set(shown)
    assert 2 <= len(shown) <= 5
    assert all(find_claim(claim).chapter == "08" for claim in shown)

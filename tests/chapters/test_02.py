"""Every number and name in the prose of chapter 02, checked against the functions."""

from pathlib import Path

import pytest

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flop_steps import (
    attention_overtakes_at,
    cached_step_flops,
    forward_flops,
    uncached_step_flops,
)
from kvlab.arithmetic.flops import (
    FULL_SQUARE,
    flops_cached,
    flops_uncached,
    token_forwards_cached,
    token_forwards_uncached,
)
from kvlab.course.claims import find_claim
from kvlab.model.toy_runs import generate, recompute

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "02_recompute_or_remember.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))
LLAMA = model_shape("llama-3.1-70b")


def test_the_step_of_d_computes_twelve_vectors_or_three() -> None:
    again, cached = recompute("ABCD"), generate("ABC", 2)[-1]
    assert (3 * again.cost.tokens_projected, 3 * cached.cost.tokens_projected) == (12, 3)
    assert (again.cost.scores_computed, cached.cost.scores_computed) == (1 + 2 + 3 + 4, 4)
    assert again.last.prediction == cached.last.prediction == "E"


def test_a_prompt_of_three_and_five_emitted_pass_25_or_7_cells() -> None:
    assert (token_forwards_uncached(3, 5), token_forwards_cached(3, 5)) == (25, 7)
    assert "On the left 25 cells" in PROSE and "the full cells do, 7 of them" in PROSE


def test_every_pass_at_its_final_length_would_be_too_many() -> None:
    assert token_forwards_uncached(2000, 1000) == 2_499_500 < 1000 * 3000
    assert token_forwards_uncached(2000, 2000) < 4 * token_forwards_uncached(2000, 1000)


def test_linear_layers_save_most_attention_less_and_the_head_nothing() -> None:
    small, large = flops_cached(LLAMA, 2000, 1000), flops_uncached(LLAMA, 2000, 1000)
    linear, attention = large.linear / small.linear, large.attention / small.attention
    assert (round(linear), round(attention), large.lm_head) == (833, 704, small.lm_head)


def test_all_three_models_cross_inside_their_context_and_the_smallest_first() -> None:
    shapes = [model_shape(name) for name in ("smollm2", "llama-3.1-8b", "llama-3.1-70b")]
    crossings = [attention_overtakes_at(shape) for shape in shapes]
    assert crossings == sorted(crossings) == [3073, 26_625, 52_225]
    assert all(at < (shape.max_seq_len or 0) for at, shape in zip(crossings, shapes, strict=True))


@pytest.mark.parametrize(("prompt", "share"), [(2**17, 1.0), (1, 0.5)])
def test_the_ratio_is_near_n_behind_a_long_prompt_and_half_of_it_behind_a_short_one(
    prompt: int, share: float
) -> None:
    run = LLAMA, prompt, 1024
    ratio = flops_uncached(*run).total / flops_cached(*run).total
    assert ratio / 1024 == pytest.approx(share, rel=0.06)


def test_one_token_saves_nothing() -> None:
    assert flops_uncached(LLAMA, 2048, 1) == flops_cached(LLAMA, 2048, 1)
    assert token_forwards_cached(2000, 1) == token_forwards_uncached(2000, 1)


@pytest.mark.parametrize(
    ("part", "step", "in_all"), [("linear", (2, 1), (4, 2)), ("attention", (4, 2), (8, 4))]
)
def test_every_growth_loses_one_power(
    part: str, step: tuple[int, int], in_all: tuple[int, int]
) -> None:
    def ratio(work, *sizes):  # type: ignore[no-untyped-def]
        large, small = (getattr(work(LLAMA, *size), part) for size in sizes)
        return pytest.approx(large / small, rel=1e-3)

    per_step = [(8000, 1), (4000, 1)]
    assert step == (ratio(uncached_step_flops, *per_step), ratio(cached_step_flops, *per_step))
    whole = [(1, 8000), (1, 4000)]
    assert in_all == (ratio(flops_uncached, *whole), ratio(flops_cached, *whole))
    assert cached_step_flops(LLAMA, 4000, 1).lm_head == uncached_step_flops(LLAMA, 9, 1).lm_head


def test_a_cached_step_does_about_one_multiply_add_for_each_weight() -> None:
    shape = model_shape("smollm2")
    work = cached_step_flops(shape, 64, 31).total
    assert 1.0 < work / 2 / 134_515_008 < 1.1  # the number of parameters, asserted elsewhere


def test_plain_products_do_about_twice_the_attention_of_a_prefill() -> None:
    square = forward_flops(LLAMA, q_len=64, attention=FULL_SQUARE).attention
    assert square / forward_flops(LLAMA, q_len=64).attention == pytest.approx(2, rel=0.02)


def test_half_and_nine_tenths_are_saved_with_two_and_ten_tokens() -> None:
    saved = [
        1 - token_forwards_cached(2000, new) / token_forwards_uncached(2000, new)
        for new in (2, 10, 1000)
    ]
    assert [round(share, 2) for share in saved] == [0.5, 0.9, 1.0]


def test_the_sizes_in_the_exercise_are_those_of_llama_3_1_70b() -> None:
    said = f"{LLAMA.num_layers} layers, {LLAMA.num_heads} query heads, {LLAMA.num_kv_heads} KV "
    assert said + f"heads, head_dim {LLAMA.head_dim}." in PROSE


@pytest.mark.parametrize(
    "claim",
    ["recompute-quadruples", "matmuls-32000", "redundant-kv-1000-500", "o-n2-to-o-n-per-step"],
)
def test_the_claims_of_this_chapter_are_all_there(claim: str) -> None:
    assert f'claim_quiz("{claim}")' in TEXT
    assert find_claim(claim).chapter == "02"


def test_the_claims_come_to_the_numbers_the_course_names() -> None:
    assert round(find_claim("recompute-quadruples").computed(), 2) == 2.4
    assert find_claim("redundant-kv-1000-500").computed() == 624_750

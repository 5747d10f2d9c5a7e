"""The closed forms: worked numbers, and equal to summing up every step, pair by pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flop_steps import (
    attention_overtakes_at,
    cached_step_flops,
    forward_flops,
    prefill_flops,
    uncached_step_flops,
)
from kvlab.arithmetic.flops import (
    CAUSAL_TRIANGLE,
    FULL_SQUARE,
    FlopCount,
    count_flops,
    flops_cached,
    flops_uncached,
    token_forwards_cached,
    token_forwards_uncached,
)
from kvlab.arithmetic.shapes import ModelShape
from kvlab.errors import InvalidArgument

TINY = ModelShape(
    name="tiny",
    num_layers=3,
    num_heads=8,
    num_kv_heads=2,
    head_dim=8,
    hidden_size=64,
    intermediate_size=128,
    vocab_size=97,
)
LENGTH = st.integers(1, 40)


def with_kv_heads(num_kv_heads: int) -> ModelShape:
    return ModelShape(**(vars(TINY) | {"num_kv_heads": num_kv_heads}))


def test_2000_and_1000_tokens() -> None:
    assert token_forwards_cached(2000, 1000) == 2_999
    assert token_forwards_uncached(2000, 1000) == 2_499_500


@pytest.mark.parametrize(("name", "ratio"), [("llama-3.1-70b", 825.7), ("llama-3.1-8b", 807.4)])
def test_the_ratio_of_work_for_2000_and_1000_tokens(name: str, ratio: float) -> None:
    shape = model_shape(name)
    cached, uncached = flops_cached(shape, 2000, 1000), flops_uncached(shape, 2000, 1000)
    assert round(uncached.total / cached.total, 1) == ratio


@given(LENGTH, LENGTH)
def test_token_forwards_are_the_sum_of_the_steps(prompt: int, new: int) -> None:
    assert token_forwards_cached(prompt, new) == prompt + sum(1 for _ in range(new - 1))
    assert token_forwards_uncached(prompt, new) == sum(prompt + i for i in range(new))


@given(LENGTH, LENGTH)
def test_the_closed_forms_are_the_sum_of_the_steps(prompt: int, new: int) -> None:
    cached = [cached_step_flops(TINY, prompt, step) for step in range(new)]
    uncached = [uncached_step_flops(TINY, prompt, step) for step in range(new)]
    assert sum(cached, FlopCount()) == flops_cached(TINY, prompt, new)
    assert sum(uncached, FlopCount()) == flops_uncached(TINY, prompt, new)


@given(LENGTH, LENGTH, st.sampled_from([CAUSAL_TRIANGLE, FULL_SQUARE]))
def test_pairs_are_those_counted_one_by_one(prompt: int, new: int, attention: str) -> None:
    def pairs(q_len: int, held: int) -> int:
        keys = range(held + q_len)
        queries = range(held, held + q_len)
        return sum(attention == FULL_SQUARE or k <= q for q in queries for k in keys)

    cached = pairs(prompt, 0) + sum(pairs(1, prompt + i) for i in range(new - 1))
    uncached = sum(pairs(prompt + i, 0) for i in range(new))
    per_pair = 2 * TINY.num_layers * TINY.num_heads * TINY.head_dim
    for found, counted in (
        (flops_cached(TINY, prompt, new, attention=attention), cached),
        (flops_uncached(TINY, prompt, new, attention=attention), uncached),
    ):
        assert found.attention_scores == found.attention_values == per_pair * counted


def test_square_and_triangle_are_told_apart() -> None:
    square = forward_flops(TINY, q_len=24, head_positions=24, attention=FULL_SQUARE)
    triangle = forward_flops(TINY, q_len=24, head_positions=24)
    assert square.linear + square.lm_head == triangle.linear + triangle.lm_head == 5_311_488
    assert square.total == 5_753_856
    assert triangle.total == 5_541_888


def test_24_cached_steps_do_exactly_the_triangle() -> None:
    one_by_one = [forward_flops(TINY, q_len=1, cached_tokens=n) for n in range(24)]
    assert sum(one_by_one, FlopCount()).total == 5_541_888


def test_recompute_with_logits_everywhere_and_full_squares() -> None:
    runs = [
        forward_flops(TINY, q_len=n, head_positions=n, attention=FULL_SQUARE) for n in range(1, 25)
    ]
    assert sum(runs, FlopCount()).total == 70_156_800


def test_kv_heads_change_the_key_and_value_projections_alone() -> None:
    counts = {n: flops_cached(with_kv_heads(n), 24, 8).by_part for n in (8, 4, 2, 1)}
    for n, parts in counts.items():
        assert parts["key_value_projections"] == counts[1]["key_value_projections"] * n
        rest = {k: v for k, v in parts.items() if k != "key_value_projections"}
        assert rest == {k: counts[1][k] for k in rest}


def test_eight_heads_of_eight_over_a_16_by_16_square_cost_65536() -> None:
    for num_kv_heads in (8, 2):
        one_layer = ModelShape(**(vars(with_kv_heads(num_kv_heads)) | {"num_layers": 1}))
        assert forward_flops(one_layer, q_len=16, attention=FULL_SQUARE).attention == 65_536


def test_tied_and_untied_embeddings_cost_the_same() -> None:
    tied = ModelShape(**(vars(TINY) | {"tied_embeddings": True}))
    assert flops_cached(tied, 24, 8) == flops_cached(TINY, 24, 8)
    assert flops_cached(tied, 24, 8).lm_head == 8 * 2 * 64 * 97


def test_logits_of_the_last_token_alone_save_23_heads() -> None:
    everywhere = prefill_flops(TINY, 24, head_positions=24)
    last = prefill_flops(TINY, 24)
    assert everywhere.total - last.total == 2 * 23 * 64 * 97 == 285_568


@given(LENGTH, LENGTH)
def test_a_chunked_prompt_costs_the_same_triangle_and_a_smaller_square(
    prompt: int, chunk: int
) -> None:
    assert prefill_flops(TINY, prompt, chunk_size=chunk) == prefill_flops(TINY, prompt)
    ends = [min(start + chunk, prompt) for start in range(0, prompt, chunk)]
    sizes = [end - start for start, end in zip(range(0, prompt, chunk), ends, strict=True)]
    per_chunk = [
        forward_flops(
            TINY,
            q_len=size,
            cached_tokens=end - size,
            head_positions=int(end == prompt),
            attention=FULL_SQUARE,
        )
        for size, end in zip(sizes, ends, strict=True)
    ]
    whole = prefill_flops(TINY, prompt, chunk_size=chunk, attention=FULL_SQUARE)
    assert sum(per_chunk, FlopCount()) == whole


def test_large_counts_stay_exact() -> None:
    shape = model_shape("llama-3.1-70b")
    count = flops_uncached(shape, 10**9, 10**9).attention_scores
    prompt, total = 10**9, 2 * 10**9 - 1
    pairs = total * (total + 1) * (total + 2) // 6 - (prompt - 1) * prompt * (prompt + 1) // 6
    assert count == 2 * 80 * 64 * 128 * pairs


def test_attention_overtakes_the_rest_at_the_position_named() -> None:
    for shape in (TINY, model_shape("llama-3.1-8b")):
        at = attention_overtakes_at(shape)
        before, after = (
            count_flops(shape, tokens=1, pairs=t, head_positions=0) for t in (at - 1, at)
        )
        assert before.attention <= before.linear < after.linear + 1
        assert after.attention > after.linear


def test_the_parts_add_up() -> None:
    count = flops_cached(TINY, 5, 5)
    assert list(count.by_part) == [
        "query_output_projections",
        "key_value_projections",
        "mlp",
        "attention_scores",
        "attention_values",
        "lm_head",
    ]
    assert sum(count.by_part.values()) == count.total
    assert count.linear + count.attention + count.lm_head == count.total


@pytest.mark.parametrize(("prompt", "new"), [(0, 1), (1, 0), (-1, 5), (2.0, 1), (True, 1)])
def test_bad_lengths_are_named(prompt: int, new: int) -> None:
    for function in (token_forwards_cached, token_forwards_uncached):
        with pytest.raises(InvalidArgument, match="_tokens="):
            function(prompt, new)
    for function in (flops_cached, flops_uncached):
        with pytest.raises(InvalidArgument, match="_tokens="):
            function(TINY, prompt, new)


def test_an_unknown_way_to_count_attention_is_named() -> None:
    with pytest.raises(InvalidArgument, match="attention='half'"):
        flops_cached(TINY, 5, 5, attention="half")

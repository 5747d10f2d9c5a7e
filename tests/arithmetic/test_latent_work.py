"""The work of latent attention, by hand and by comparison of the two ways."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.latent_work import (
    ABSORB,
    EXPAND,
    LatentShape,
    absorbing_pays_up_to,
    latent_work,
)
from kvlab.errors import InvalidArgument

SMALL = LatentShape(
    hidden_size=32,
    num_heads=4,
    kv_lora_rank=16,
    qk_nope_head_dim=8,
    qk_rope_head_dim=4,
    v_head_dim=6,
    q_lora_rank=12,
)


def deepseek(name: str) -> LatentShape:
    return LatentShape.from_config(find_model(name).config)


def test_a_small_layer_counted_by_hand() -> None:
    expand = latent_work(SMALL, EXPAND, q_len=1, kv_len=10)
    absorb = latent_work(SMALL, ABSORB, q_len=1, kv_len=10)
    shared = 32 * 12 + 12 * 4 * 12 + 32 * 20 + 4 * 6 * 32  # q_a, q_b, kv_a, o
    assert expand.projections == absorb.projections == 2 * shared
    assert expand.up_projection == 2 * 10 * 16 * 4 * 14  # for all ten tokens
    assert absorb.up_projection == 2 * 1 * 16 * 4 * 14  # for the new one alone
    assert (expand.scores, absorb.scores) == (2 * 10 * 4 * 12, 2 * 10 * 4 * 20)
    assert (expand.values, absorb.values) == (2 * 10 * 4 * 6, 2 * 10 * 4 * 16)


def test_the_cache_of_deepseek_v3_is_a_seventieth_of_its_heads() -> None:
    v3 = deepseek("deepseek-v3")
    assert (v3.elements_per_token, v3.expanded_elements_per_token) == (576, 40_960)


def test_deepseek_v3_absorbs_when_it_decodes_and_expands_when_it_prefills() -> None:
    v3 = deepseek("deepseek-v3")
    assert absorbing_pays_up_to(v3, kv_len=1) == 0  # one token alone: nothing is saved
    assert all(absorbing_pays_up_to(v3, kv_len=n) >= 1 for n in (2, 10, 8192))
    assert absorbing_pays_up_to(v3, kv_len=10**9) == 170  # 131,072 / 768
    whole_prompt = [latent_work(v3, way, q_len=2048, kv_len=2048).total for way in (EXPAND, ABSORB)]
    assert whole_prompt[0] < whole_prompt[1]


sizes = st.integers(1, 40)
shapes = st.builds(
    LatentShape,
    hidden_size=sizes,
    num_heads=sizes,
    kv_lora_rank=sizes,
    qk_nope_head_dim=sizes,
    qk_rope_head_dim=sizes,
    v_head_dim=sizes,
    q_lora_rank=st.one_of(st.none(), sizes),
)


@settings(max_examples=100, deadline=None)
@given(shape=shapes, kv_len=st.integers(1, 60))
def test_the_limit_is_where_the_two_ways_change_places(shape: LatentShape, kv_len: int) -> None:
    limit = absorbing_pays_up_to(shape, kv_len=kv_len)
    for q_len in range(1, kv_len + 1):
        expand, absorb = (
            latent_work(shape, way, q_len=q_len, kv_len=kv_len).total for way in (EXPAND, ABSORB)
        )
        assert (absorb < expand) == (q_len <= limit)


def test_a_batch_is_so_many_times_the_work() -> None:
    for way in (EXPAND, ABSORB):
        one = latent_work(SMALL, way, q_len=3, kv_len=9)
        assert latent_work(SMALL, way, q_len=3, kv_len=9, batch=5).total == 5 * one.total


def test_bad_arguments_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="way='magic': must be 'expand' or 'absorb'"):
        latent_work(SMALL, "magic", q_len=1, kv_len=1)
    with pytest.raises(InvalidArgument, match="kv_len=2: must be a whole number of 3 or more"):
        latent_work(SMALL, EXPAND, q_len=3, kv_len=2)
    with pytest.raises(InvalidArgument, match="kv_lora_rank=None: is missing"):
        LatentShape.from_config(find_model("llama-3.1-70b").config)

"""Pooling KV heads: means by hand, sharing written out as repeated heads, numbers refused."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kvlab.errors import InvalidArgument
from kvlab.model.llama import Llama
from kvlab.model.pool_heads import mean_of_groups, pool_kv_heads, repeat_kv_heads

MakeLlama = Callable[..., Llama]


@pytest.fixture
def mha(make_llama: MakeLlama) -> Llama:
    """Return a model with as many KV heads as query heads, four."""
    return make_llama(num_key_value_heads=4)


def test_pooled_projections_are_the_means_of_neighbouring_heads(mha: Llama) -> None:
    pooled = pool_kv_heads(mha, 2)
    for layer, old in zip(pooled.model.layers, mha.model.layers, strict=True):
        for name in ("k_proj", "v_proj"):
            new, rows = getattr(layer.self_attn, name).weight, getattr(old.self_attn, name).weight
            by_hand = torch.cat([(rows[:8] + rows[8:16]) / 2, (rows[16:24] + rows[24:]) / 2])
            torch.testing.assert_close(new, by_hand, atol=0, rtol=0)


def test_all_other_weights_are_the_old_ones(mha: Llama) -> None:
    pooled, old = pool_kv_heads(mha, 1).state_dict(), mha.state_dict()
    changed = {name for name in old if not torch.equal(pooled[name], old[name])}
    assert changed == {
        f"model.layers.{i}.self_attn.{kind}_proj.weight" for i in range(2) for kind in "kv"
    }


def test_pooling_leaves_the_old_model_as_it_was(mha: Llama) -> None:
    before = {name: value.clone() for name, value in mha.state_dict().items()}
    pooled = pool_kv_heads(mha, 4)
    pooled.lm_head.weight.data.zero_()
    assert all(torch.equal(value, before[name]) for name, value in mha.state_dict().items())


def test_a_model_with_repeated_heads_answers_as_the_one_that_shares_them(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    gqa = make_llama(num_key_value_heads=2)
    with torch.no_grad():
        torch.testing.assert_close(repeat_kv_heads(gqa, 4)(prompt), gqa(prompt))


def test_pooling_what_was_repeated_gives_back_the_model(make_llama: MakeLlama) -> None:
    gqa = make_llama(num_key_value_heads=2, attention_bias=True)
    back = pool_kv_heads(repeat_kv_heads(gqa, 4), 2).state_dict()
    assert all(torch.equal(value, back[name]) for name, value in gqa.state_dict().items())


def test_a_group_that_differs_loses_something(mha: Llama, prompt: Tensor) -> None:
    with torch.no_grad():
        assert not torch.allclose(pool_kv_heads(mha, 2)(prompt), mha(prompt), atol=1e-3)


@pytest.mark.parametrize("number", [0, 3, 8, -1, 2.0])
def test_a_number_that_does_not_divide_the_heads_is_refused(mha: Llama, number: int) -> None:
    with pytest.raises(InvalidArgument, match="num_kv_heads="):
        pool_kv_heads(mha, number)


@pytest.mark.parametrize("number", [1, 3])
def test_heads_are_repeated_a_whole_number_of_times(make_llama: MakeLlama, number: int) -> None:
    with pytest.raises(InvalidArgument, match="num_kv_heads="):
        repeat_kv_heads(make_llama(num_key_value_heads=2), number)


def test_a_mean_keeps_the_dtype() -> None:
    assert mean_of_groups(torch.ones(4, 2, dtype=torch.bfloat16), 2).dtype == torch.bfloat16

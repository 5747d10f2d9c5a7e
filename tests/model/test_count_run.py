"""The counter of a run sees what really runs, and nothing else."""

from collections.abc import Callable

import pytest
import torch

from kvlab.arithmetic.flop_steps import forward_flops
from kvlab.arithmetic.flops import (
    flops_cached,
    flops_uncached,
    token_forwards_cached,
    token_forwards_uncached,
)
from kvlab.model.count_run import count_run
from kvlab.model.decode import generate
from kvlab.model.llama import Llama

MakeLlama = Callable[..., Llama]


@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize(("prompt", "new"), [(1, 1), (6, 10), (17, 3)])
@pytest.mark.parametrize("cache", ["none", "growing", "preallocated"])
def test_a_counted_run_does_the_work_of_the_closed_form(
    make_llama: MakeLlama, cache: str, prompt: int, new: int, num_kv_heads: int
) -> None:
    model = make_llama(num_key_value_heads=num_kv_heads)
    with count_run(model) as count:
        list(generate(model, list(range(prompt)), max_new_tokens=new, cache=cache))
    formula = flops_uncached if cache == "none" else flops_cached
    tokens = token_forwards_uncached if cache == "none" else token_forwards_cached
    assert count.flops == formula(model.config.to_shape(), prompt, new)
    assert (count.passes, count.token_forwards) == (new, tokens(prompt, new))


def test_counting_changes_no_logit(make_llama: MakeLlama) -> None:
    model, ids = make_llama(), torch.arange(9)[None]
    with torch.no_grad():
        bare = model(ids)
        with count_run(model):
            counted = model(ids)
    assert torch.equal(bare, counted)


def test_after_the_block_nothing_is_counted_any_more(make_llama: MakeLlama) -> None:
    model = make_llama()
    with count_run(model) as count:
        model(torch.tensor([[1]]))
    before = count.flops
    model(torch.tensor([[1, 2, 3]]))
    assert count.flops == before
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_an_error_inside_the_block_leaves_no_hook(make_llama: MakeLlama) -> None:
    model = make_llama()
    with pytest.raises(KeyboardInterrupt), count_run(model):
        raise KeyboardInterrupt
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_padded_batch_counts_the_pairs_that_the_mask_lets_through(make_llama: MakeLlama) -> None:
    model, ids = make_llama(), torch.ones(2, 4, dtype=torch.long)
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])
    with count_run(model) as count:
        model(ids, attention_mask=mask)
    shape = model.config.to_shape()
    pairs = 10 + 2 + (1 + 2)  # a whole triangle; two padding tokens that see themselves; 1 + 2
    assert count.flops.attention_scores == 2 * shape.num_layers * 4 * 8 * pairs


def test_two_counters_may_be_nested(make_llama: MakeLlama) -> None:
    model = make_llama()
    with count_run(model) as outer:
        model(torch.tensor([[1]]))
        with count_run(model) as inner:
            model(torch.tensor([[1, 2, 3]]))
    shape = model.config.to_shape()
    assert inner.flops == forward_flops(shape, q_len=3, head_positions=3)
    assert outer.flops == inner.flops + forward_flops(shape, q_len=1)

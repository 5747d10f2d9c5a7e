"""The closed forms against runs of a real Llama whose every product is counted."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from kvlab.arithmetic.flop_steps import forward_flops, prefill_flops
from kvlab.arithmetic.flops import FULL_SQUARE, flops_cached, flops_uncached
from kvlab.cache import make_cache
from kvlab.model.config import LlamaConfig
from kvlab.model.count_run import count_run
from kvlab.model.decode import generate, prefill
from kvlab.model.llama import Llama


def tiny_llama(num_kv_heads: int = 2, tied: bool = False) -> Llama:
    config = LlamaConfig(
        num_layers=3,
        num_heads=8,
        num_kv_heads=num_kv_heads,
        head_dim=8,
        hidden_size=64,
        intermediate_size=128,
        vocab_size=97,
        max_seq_len=64,
        tied_embeddings=tied,
    )
    return Llama(config).init_weights(seed=0).eval()


def torch_flops(run: object) -> int:
    """The framework's own count, with the attention kernel made of plain products."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("num_kv_heads", [8, 2, 1])
@pytest.mark.parametrize(("prompt", "new"), [(1, 1), (6, 10), (17, 3)])
@pytest.mark.parametrize("cache", ["none", "growing", "preallocated"])
def test_an_instrumented_run_does_the_work_of_the_closed_form(
    cache: str, prompt: int, new: int, num_kv_heads: int
) -> None:
    model = tiny_llama(num_kv_heads)
    formula = flops_uncached if cache == "none" else flops_cached
    with count_run(model) as count:
        list(generate(model, list(range(prompt)), max_new_tokens=new, cache=cache))
    assert count.flops == formula(model.config.to_shape(), prompt, new)


def test_a_prompt_in_chunks_does_the_same_work_but_for_the_head() -> None:
    model = tiny_llama()
    with count_run(model) as count:
        prefill(model, list(range(24)), make_cache("growing", num_layers=3), chunk_size=5)
    expected = prefill_flops(model.config.to_shape(), 24, chunk_size=5, head_positions=5)
    assert count.flops == expected


def test_tied_embeddings_do_the_same_work() -> None:
    found = []
    for tied in (False, True):
        model = tiny_llama(tied=tied)
        with count_run(model) as count:
            list(generate(model, [1, 2, 3], max_new_tokens=4))
        found.append(count.flops)
    assert found[0] == found[1]


def test_the_framework_counts_the_full_square_when_its_kernel_is_plain_products() -> None:
    model, ids = tiny_llama(), torch.arange(24)[None]
    shape = model.config.to_shape()
    expected = forward_flops(shape, q_len=24, head_positions=24, attention=FULL_SQUARE).total
    assert torch_flops(lambda: model(ids)) == expected == 5_753_856


def test_the_framework_counts_the_full_square_of_a_whole_cached_generation() -> None:
    model = tiny_llama()
    found = torch_flops(lambda: list(generate(model, list(range(9)), max_new_tokens=7)))
    assert found == flops_cached(model.config.to_shape(), 9, 7, attention=FULL_SQUARE).total


def test_logits_of_the_last_token_alone_save_what_the_framework_counts() -> None:
    model, ids = tiny_llama(), torch.arange(24)[None]
    everywhere = torch_flops(lambda: model(ids))
    assert everywhere - torch_flops(lambda: model(ids, last_token_only=True)) == 285_568


def test_the_framework_reports_no_attention_for_the_fused_kernel_of_a_cpu() -> None:
    query = torch.randn(1, 8, 16, 8)
    with FlopCounterMode(display=False) as fused:
        F.scaled_dot_product_attention(query, query, query)
    plain = torch_flops(lambda: F.scaled_dot_product_attention(query, query, query))
    shape = replace(tiny_llama(num_kv_heads=8).config.to_shape(), num_layers=1)
    assert plain == forward_flops(shape, q_len=16, attention=FULL_SQUARE).attention == 65_536
    if fused.get_total_flops() not in (0, 65_536):
        pytest.fail(f"the framework counts something new: {fused.get_total_flops()}")

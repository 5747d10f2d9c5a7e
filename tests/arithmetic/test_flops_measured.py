"""The closed forms against runs of a real Llama whose every product is counted."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from kvlab.arithmetic.flop_steps import forward_flops, prefill_flops
from kvlab.arithmetic.flops import FULL_SQUARE, FlopCount, flops_cached, flops_uncached
from kvlab.cache import make_cache
from kvlab.model.config import LlamaConfig
from kvlab.model.decode import generate, prefill
from kvlab.model.llama import Llama

PARTS = {
    "q_proj": "query_output_projections",
    "o_proj": "query_output_projections",
    "k_proj": "key_value_projections",
    "v_proj": "key_value_projections",
    "gate_proj": "mlp",
    "up_proj": "mlp",
    "down_proj": "mlp",
    "lm_head": "lm_head",
}


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


@contextmanager
def counted(model: Llama, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count each product as it runs: matrix shapes in linear layers, unmasked pairs in attention.

    The masked pairs are found by looking at what the model really passes to attention.
    """
    work: Counter[str] = Counter()
    real_attention = F.scaled_dot_product_attention

    def on_linear(name: str, layer: nn.Linear, inputs: tuple[Tensor, ...]) -> None:
        rows = inputs[0].numel() // layer.in_features
        work[PARTS[name]] += 2 * rows * layer.in_features * layer.out_features

    def attention(query: Tensor, key: Tensor, value: Tensor, **options: object) -> Tensor:
        mask, (q_len, kv_len) = options.get("attn_mask"), (query.shape[2], key.shape[2])
        if mask is None:
            mask = torch.ones(q_len, kv_len, dtype=torch.bool)
            mask = mask.tril() if options.get("is_causal") else mask
        pairs = int(mask.expand(len(query), query.shape[1], q_len, kv_len).sum())
        work["attention_scores"] += 2 * pairs * key.shape[-1]
        work["attention_values"] += 2 * pairs * value.shape[-1]
        return real_attention(query, key, value, **options)

    hooks = [
        module.register_forward_pre_hook(partial(on_linear, path.rsplit(".", 1)[-1]))
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    with monkeypatch.context() as patch:
        patch.setattr(F, "scaled_dot_product_attention", attention)
        yield work
    for hook in hooks:
        hook.remove()


def torch_flops(run: object) -> int:
    """The framework's own count, with the attention kernel made of plain products."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("num_kv_heads", [8, 2, 1])
@pytest.mark.parametrize(("prompt", "new"), [(1, 1), (6, 10), (17, 3)])
@pytest.mark.parametrize("cache", ["none", "growing", "preallocated"])
def test_an_instrumented_run_does_the_work_of_the_closed_form(
    monkeypatch: pytest.MonkeyPatch, cache: str, prompt: int, new: int, num_kv_heads: int
) -> None:
    model = tiny_llama(num_kv_heads)
    formula = flops_uncached if cache == "none" else flops_cached
    with counted(model, monkeypatch) as work:
        list(generate(model, list(range(prompt)), max_new_tokens=new, cache=cache))
    assert FlopCount(**work) == formula(model.config.to_shape(), prompt, new)


def test_a_prompt_in_chunks_does_the_same_work_but_for_the_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_llama()
    with counted(model, monkeypatch) as work:
        prefill(model, list(range(24)), make_cache("growing", num_layers=3), chunk_size=5)
    expected = prefill_flops(model.config.to_shape(), 24, chunk_size=5, head_positions=5)
    assert FlopCount(**work) == expected


def test_tied_embeddings_do_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for tied in (False, True):
        model = tiny_llama(tied=tied)
        with counted(model, monkeypatch) as work:
            list(generate(model, [1, 2, 3], max_new_tokens=4))
        found.append(dict(work))
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

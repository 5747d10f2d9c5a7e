"""Evicting is masking: every rule gives the logits of a full run that may not see what is gone."""

from collections.abc import Callable

import pytest
import torch
from feeding import feed
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_llama import cached_run, masked_run, random_ids, tiny_llama
from torch import Tensor

from kvlab.cache import KVCache, make_cache, rollback
from kvlab.cache.evicting import EvictingLayer
from kvlab.cache.eviction_observed import ExpectedLayer, HeavyHitterLayer
from kvlab.cache.eviction_scores import (
    KeyDiffLayer,
    KeyNormLayer,
    RandomLayer,
    SinksLayer,
    WindowLayer,
)
from kvlab.cache.per_head import PerHeadLayer
from kvlab.errors import Unsupported
from kvlab.model.llama import Llama

MakeLayer = Callable[[int], EvictingLayer]
RULES: dict[str, MakeLayer] = {
    "window": WindowLayer,
    "sinks": lambda budget: SinksLayer(budget, num_sink_tokens=min(2, budget)),
    "random": lambda budget: RandomLayer(budget, seed=3),
    "keynorm": KeyNormLayer,
    "keynorm with sinks and recent": lambda budget: KeyNormLayer(
        budget, num_sink_tokens=budget // 3, recent=budget // 3
    ),
    "keydiff": KeyDiffLayer,
    "h2o": HeavyHitterLayer,
    "h2o with sinks": lambda budget: HeavyHitterLayer(
        budget, num_sink_tokens=budget // 3, recent=budget // 3
    ),
    "expected": ExpectedLayer,
}
CHUNKS = [[14], [1] * 14, [8, 1, 1, 4], [3, 5, 1, 5]]


def cache_of(make_layer: MakeLayer, *budgets: int) -> KVCache:
    return KVCache(make_layer(budget) for budget in budgets)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def model() -> Llama:
    """Three layers of 4 query heads and 2 KV heads."""
    return tiny_llama()


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_evicting_equals_masking_the_same_tokens(
    model: Llama, rule: str, chunks: list[int]
) -> None:
    ids = random_ids(2, 14)
    run = cached_run(model, ids, chunks, cache_of(RULES[rule], 6, 4, 9))  # a budget for each layer
    close(run.logits, masked_run(model, ids, run.allowed).logits)
    assert [held[-1].shape[2] for held in run.kept] == [6, 4, 9]
    if len(chunks) > 1:
        assert (run.logits - model(ids)).abs().max() > 1e-2  # what was dropped is missed


@pytest.mark.parametrize("rule", RULES)
def test_evicting_in_a_windowed_layer_leaves_its_window_in_force(rule: str) -> None:
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    model = tiny_llama(model_type="ministral", sliding_window=4, layer_types=kinds)
    ids, window = random_ids(2, 14), torch.ones(14, 14).triu(-3).bool()
    run = cached_run(model, ids, [6, 1, 4, 3], cache_of(RULES[rule], 6, 6, 6))
    allowed = [run.allowed[0] & window, run.allowed[1], run.allowed[2] & window]
    close(run.logits, masked_run(model, ids, allowed).logits)


@given(
    rule=st.sampled_from(sorted(RULES)),
    chunks=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    room=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_a_budget_of_all_tokens_or_more_is_the_identity(
    rule: str, chunks: list[int], room: int
) -> None:
    model, length = tiny_llama(), sum(chunks)
    ids = random_ids(2, length)
    cache = cache_of(RULES[rule], *[length + room] * 3)
    full = make_cache("growing", num_layers=3)
    pieces = list(ids.split(chunks, dim=1))
    close(feed(model, pieces, cache), feed(model, pieces, full))
    assert cache.nbytes == full.nbytes
    for layer, exact in zip(cache.layers, full.layers, strict=True):
        assert torch.equal(layer.kept_positions()[0, 0], torch.arange(length))
        close(layer.keys, exact.keys)


@pytest.mark.parametrize("rule", RULES)
def test_bytes_equal_the_formula_and_what_is_kept_beside_counts_as_reserved(
    model: Llama, rule: str
) -> None:
    cache = cache_of(RULES[rule], 6, 4, 9)
    feed(model, list(random_ids(2, 14).split(1, dim=1)), cache)
    for layer, budget in zip(cache.layers, (6, 4, 9), strict=True):
        assert layer.nbytes == 2 * 2 * 2 * budget * 8 * 4  # K, V x batch x heads x tokens x dim x 4
        beside = [getattr(layer, name) for name in layer.beside]
        beside_bytes = sum(tensor.nbytes for tensor in beside if tensor is not None)
        assert beside_bytes > 0
        assert layer.reserved_nbytes == layer.nbytes + beside_bytes
    cache.reset()
    assert (cache.nbytes, cache.reserved_nbytes, cache.get_seq_length()) == (0, 0, 0)


@pytest.mark.parametrize("rule", RULES)
def test_rollback_puts_back_what_was_dropped(model: Llama, rule: str) -> None:
    ids, cache = random_ids(1, 14), cache_of(RULES[rule], 6, 4, 9)
    model(ids[:, :10], cache=cache)
    before = [layer.kept_positions() for layer in cache.layers]
    with pytest.raises(KeyboardInterrupt), rollback(cache):
        model(ids[:, 10:12], cache=cache)
        raise KeyboardInterrupt
    assert all(map(torch.equal, before, [layer.kept_positions() for layer in cache.layers]))
    twin = cache.clone()
    first = [model(ids[:, 10:12], cache=c) for c in (cache, twin)]
    second = [model(ids[:, 12:], cache=c) for c in (cache, twin)]
    assert torch.equal(*first) and torch.equal(*second)
    other = cache_of(RULES[rule], 6, 4, 9)
    model(ids[:, :10], cache=other)
    assert torch.equal(model(ids[:, 10:12], cache=other), first[0])


@pytest.mark.parametrize("rule", RULES)
def test_reordered_rows_go_on_as_the_rows_they_were(model: Llama, rule: str) -> None:
    ids, rows = random_ids(2, 14), torch.tensor([1, 1, 0])
    cache, plain = cache_of(RULES[rule], 6, 4, 9), cache_of(RULES[rule], 6, 4, 9)
    model(ids[:, :10], cache=cache)
    model(ids[:, :10], cache=plain)
    cache.select_rows(rows)
    for start, end in ((10, 11), (11, 14)):
        expected = model(ids[:, start:end], cache=plain)[rows]
        close(model(ids[rows, start:end], cache=cache), expected)
    kept = zip(cache.layers, plain.layers, strict=True)
    assert all(torch.equal(a.kept_positions(), b.kept_positions()[rows]) for a, b in kept)


@pytest.mark.parametrize("rule", RULES)
def test_shortening_is_right_before_the_first_token_goes_and_refused_after(
    model: Llama, rule: str
) -> None:
    ids, cache = random_ids(1, 14), cache_of(RULES[rule], 8, 8, 8)
    model(ids[:, :8], cache=cache)
    if rule.startswith(("h2o", "expected")):
        assert not cache.layers[0].is_croppable
        with pytest.raises(Unsupported, match="what it saw of the later tokens"):
            cache.truncate_to(5)
    else:
        assert cache.layers[0].is_croppable
        cache.truncate_to(5)
        other = cache_of(RULES[rule], 8, 8, 8)
        model(ids[:, :5], cache=other)
        pieces = list(ids[:, 5:].split([3, 6], dim=1))
        close(feed(model, pieces, cache), feed(model, pieces, other))
        with pytest.raises(
            Unsupported, match=r"cannot go back to 13 tokens: 6 tokens were dropped"
        ):
            cache.truncate_to(13)
        assert cache.get_seq_length() == 14
    cache.truncate_to(0)
    fresh = cache_of(RULES[rule], 8, 8, 8)
    close(feed(model, [ids], cache), feed(model, [ids], fresh))


def test_a_refused_shortening_leaves_every_layer_as_it_was(model: Llama) -> None:
    ids = random_ids(1, 10)
    growing = make_cache("growing", num_layers=2).layers
    cache = KVCache([*growing, WindowLayer(4)])
    model(ids, cache=cache)
    with pytest.raises(Unsupported, match="6 tokens were dropped"):
        cache.truncate_to(8)
    assert [layer.get_seq_length() for layer in cache.layers] == [10, 10, 10]
    assert [layer.num_kept() for layer in cache.layers] == [10, 10, 4]


def per_head(*rules: tuple[str, int]) -> PerHeadLayer:
    return PerHeadLayer([RULES[rule](budget) for rule, budget in rules])


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_kv_heads_of_different_budgets_equal_masking_the_same_tokens(
    model: Llama, rule: str, chunks: list[int]
) -> None:
    ids = random_ids(2, 14)
    budgets = ((3, 7), (9, 4), (5, 5))
    cache = KVCache(per_head((rule, a), (rule, b)) for a, b in budgets)
    run = cached_run(model, ids, chunks, cache)
    close(run.logits, masked_run(model, ids, run.allowed).logits)
    assert cache.nbytes == 2 * 2 * 8 * 4 * sum(a + b for a, b in budgets)  # K, V x batch x ...
    held = [(row >= 0).sum(dim=-1).tolist() for row in (layer[-1] for layer in run.kept)]
    assert held == [[list(pair)] * 2 for pair in budgets]


def test_heads_of_one_layer_may_follow_different_rules_and_be_undone_together(
    model: Llama,
) -> None:
    ids = random_ids(2, 14)
    cache = KVCache(per_head(("h2o", 4), ("sinks", 8)) for _ in range(3))
    model(ids[:, :9], cache=cache)
    twin, before = cache.clone(), [layer.kept_positions() for layer in cache.layers]
    with pytest.raises(KeyboardInterrupt), rollback(cache):
        model(ids[:, 9:], cache=cache)
        raise KeyboardInterrupt
    assert all(map(torch.equal, before, [layer.kept_positions() for layer in cache.layers]))
    expected = model(ids[:, 9:], cache=twin)
    assert [layer.num_kept() for layer in cache.layers] == [8, 8, 8]
    cache.select_rows(torch.tensor([1, 0]))
    close(model(ids[[1, 0], 9:], cache=cache), expected[[1, 0]])
    with pytest.raises(Unsupported, match="HeavyHitterLayer cannot go back to 12"):
        cache.truncate_to(12)
    assert [head.num_kept() for head in cache.layers[0].heads] == [4, 8]
    cache.reset()
    assert (cache.reserved_nbytes, cache.get_seq_length()) == (0, 0)

"""Evicting caches in transformers' Llama: the logits of ours, or a sentence that says why not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from masked_llama import CONFIG, random_ids, tiny_llama
from torch import Tensor

from kvlab.cache import KVCache, call_model, generate_with
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

RULES: dict[str, Callable[..., EvictingLayer]] = {
    "window": WindowLayer,
    "sinks": SinksLayer,
    "keynorm": KeyNormLayer,
    "keydiff": KeyDiffLayer,
    "random": RandomLayer,
}
ATTENTION = ("sdpa", "eager")
CHUNKS = [[14], [1] * 14, [8, 1, 1, 4], [3, 5, 1, 5]]


@pytest.fixture(scope="module")
def ours() -> Llama:
    """Three layers."""
    return tiny_llama()


@pytest.fixture(scope="module", params=ATTENTION)
def theirs(request: pytest.FixtureRequest, ours: Llama) -> Any:
    """transformers' Llama with the same weights, for each way it computes attention."""
    config = transformers.LlamaConfig(**CONFIG, bos_token_id=None, eos_token_id=None)
    config._attn_implementation = request.param
    model = transformers.LlamaForCausalLM(config)
    model.load_state_dict(ours.state_dict())
    return model.eval()


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("positions", ["kept", "rerotated"])
@pytest.mark.parametrize("rule", RULES)
def test_both_llamas_give_the_same_logits(
    ours: Llama, theirs: Any, rule: str, positions: str, chunks: list[int]
) -> None:
    options = {"positions": positions, "inv_freq": ours.rope.inv_freq}
    caches = [KVCache(RULES[rule](6, **options) for _ in range(3)) for _ in range(2)]
    for piece in random_ids(2, 14).split(chunks, dim=1):
        close(ours(piece, cache=caches[0]), call_model(theirs, piece, cache=caches[1])[0])
    for mine, other in zip(caches[0].layers, caches[1].layers, strict=True):
        assert torch.equal(mine.kept_positions(), other.kept_positions())


@pytest.mark.parametrize("rule", RULES)
def test_generate_writes_what_ours_writes(ours: Llama, theirs: Any, rule: str) -> None:
    ids, cache = random_ids(1, 10), KVCache(RULES[rule](6) for _ in range(3))
    written = generate_with(theirs, ids, max_new_tokens=8, cache=cache)[0, 10:]
    own, feed = KVCache(RULES[rule](6) for _ in range(3)), ids
    for token in written:
        assert ours(feed, cache=own, last_token_only=True).argmax() == token
        feed = token[None, None]


def per_head() -> PerHeadLayer:
    return PerHeadLayer([WindowLayer(4), WindowLayer(6)])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: HeavyHitterLayer(6), "HeavyHitterLayer: it looks on while attention works"),
        (lambda: ExpectedLayer(6), "ExpectedLayer: it looks on while attention works"),
        (per_head, "PerHeadLayer: its KV heads keep different numbers of tokens"),
    ],
)
def test_what_needs_more_than_transformers_gives_is_refused_at_the_first_call(
    theirs: Any, make: Callable[[], Any], reason: str
) -> None:
    cache = KVCache(make() for _ in range(3))
    with pytest.raises(Unsupported, match=reason):
        call_model(theirs, random_ids(1, 4), cache=cache)
    assert cache.get_seq_length() == 0


def test_budgets_of_layers_run_token_by_token_and_are_refused_in_pieces(ours: Llama) -> None:
    config = transformers.LlamaConfig(**CONFIG)
    theirs = transformers.LlamaForCausalLM(config).eval()
    theirs.load_state_dict(ours.state_dict())
    ids = random_ids(2, 14)
    caches = [KVCache(SinksLayer(budget) for budget in (6, 4, 9)) for _ in range(2)]
    for piece in ids[:, :11].split([8, 1, 1, 1], dim=1):  # the first piece: all layers empty
        close(ours(piece, cache=caches[0]), call_model(theirs, piece, cache=caches[1])[0])
    ours(ids[:, 11:], cache=caches[0])
    with pytest.raises(Unsupported, match=r"layers keep different numbers of tokens.* not 3,"):
        call_model(theirs, ids[:, 11:], cache=caches[1])


def test_generate_would_place_turned_keys_wrongly_and_is_refused(ours: Llama, theirs: Any) -> None:
    options = {"positions": "rerotated", "inv_freq": ours.rope.inv_freq}
    cache = KVCache(WindowLayer(6, **options) for _ in range(3))
    with pytest.raises(Unsupported, match="places tokens by the number seen"):
        generate_with(theirs, random_ids(1, 10), max_new_tokens=3, cache=cache)


def test_padding_is_refused_where_kvlab_hands_the_cache_over(theirs: Any) -> None:
    ids, mask = random_ids(2, 6), torch.ones(2, 6, dtype=torch.long)
    mask[1, :2] = 0
    for run in (call_model, generate_with):
        cache, options = KVCache(SinksLayer(8) for _ in range(3)), {"attention_mask": mask}
        options |= {} if run is call_model else {"max_new_tokens": 3}
        with pytest.raises(Unsupported, match="attention_mask: a padded batch cannot"):
            run(theirs, ids, cache=cache, **options)
        assert cache.get_seq_length() == 0


def test_caches_of_equal_layers_need_no_mask_of_their_own(theirs: Any) -> None:
    """A cache that was used in kvlab's Llama goes on in transformers', and back."""
    ours, ids = tiny_llama(), random_ids(1, 14)
    cache, other = (KVCache(SinksLayer(6) for _ in range(3)) for _ in range(2))
    for number, piece in enumerate(ids.split([5, 4, 1, 4], dim=1)):
        expected = ours(piece, cache=other)
        odd = number % 2
        close(
            call_model(theirs, piece, cache=cache)[0] if odd else ours(piece, cache=cache), expected
        )

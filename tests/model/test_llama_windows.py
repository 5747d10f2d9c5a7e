"""Sliding windows: the logits of transformers' windowed models, for any chunking and cache."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from feeding import feed
from torch import Tensor

from kvlab.cache import make_cache
from kvlab.cache.hf import call_model
from kvlab.cache.hf_caches import cache_for
from kvlab.errors import Unsupported
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.masks import visible_keys

SIZES: dict[str, Any] = {
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 61,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
}
WINDOW = 4
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
MODELS: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # class, config class, changes
    "mistral, window in all layers": (
        transformers.MistralForCausalLM,
        transformers.MistralConfig,
        {"model_type": "mistral"},
    ),
    "ministral, window in some layers": (
        transformers.MinistralForCausalLM,
        transformers.MinistralConfig,
        {"model_type": "ministral", "layer_types": MIXED},
    ),
}
CHUNKS = [[12], [1] * 12, [5, 1, 6], [3, 4, 4, 1]]
Windowed = tuple[Llama, Any]


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    """Keep no graph."""
    with torch.no_grad():
        yield


@pytest.fixture(params=MODELS)
def windowed(request: pytest.FixtureRequest) -> Windowed:
    """Our model and transformers' with the same weights; W = 4 in all layers, or in two of 3."""
    model_class, config_class, changes = MODELS[request.param]
    config = {**SIZES, "sliding_window": WINDOW, **changes}
    ours = Llama(LlamaConfig.from_hf(config)).init_weights(seed=7, std=0.2).eval()
    theirs = model_class(config_class(**config)).eval()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.fixture
def ids() -> Tensor:
    """Two rows of 12 tokens: three windows long."""
    return torch.randint(0, SIZES["vocab_size"], (2, 12), generator=torch.manual_seed(3))


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


def test_logits_equal_those_of_transformers(windowed: Windowed, ids: Tensor) -> None:
    ours, theirs = windowed
    expected = theirs(ids, use_cache=False).logits
    assert_close(ours(ids), expected)
    no_window = Llama(LlamaConfig.from_hf({**SIZES, "model_type": "llama"}))
    no_window.load_state_dict(ours.state_dict())
    difference = (no_window(ids) - expected).abs().amax(dim=(0, 2))
    assert difference[:WINDOW].max() < 1e-4 < 0.1 < difference[WINDOW]  # query W is cut first


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_any_chunking_gives_the_uncached_logits(
    windowed: Windowed, ids: Tensor, chunks: list[int]
) -> None:
    ours, theirs = windowed
    expected = ours(ids)
    caches = {
        "growing": make_cache("growing", num_layers=3),
        "preallocated": make_cache("preallocated", num_layers=3, capacity=16),
        "transformers' own, which drops tokens": cache_for(theirs.config),
    }
    for name, cache in caches.items():
        pieces = list(ids.split(chunks, dim=1))
        torch.testing.assert_close(
            feed(ours, pieces, cache),
            expected,
            rtol=0,
            atol=1e-5,
            msg=lambda m, n=name: f"{n}: {m}",
        )


def test_left_padding_changes_no_row(windowed: Windowed, ids: Tensor) -> None:
    ours, theirs = windowed
    mask = torch.ones_like(ids)
    mask[1, :5] = 0
    alone = ours(ids[1:, 5:])
    assert_close(ours(ids, attention_mask=mask)[1:, 5:], alone, 1e-5)
    dropping = cache_for(theirs.config)  # its windowed layers have dropped tokens by the last step
    for start, end in ((0, 7), (7, 11), (11, 12)):
        logits = ours(ids[:, start:end], attention_mask=mask[:, :end], cache=dropping)
        assert_close(logits[1:, max(5 - start, 0) :], alone[:, max(start - 5, 0) : end - 5], 1e-5)
    cache = cache_for(theirs.config)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    options = {"attention_mask": mask, "position_ids": positions, "cache": cache}
    assert_close(call_model(theirs, ids, **options)[0][1:, 5:], alone)


def test_padding_behind_dropped_tokens_of_a_full_layer_is_refused() -> None:
    mask = torch.tensor([[0, 1, 1, 1, 1]])
    with pytest.raises(Unsupported, match="padded batch"):
        visible_keys(torch.zeros(1, 1), 4, 3, 2, mask)


def test_a_query_sees_w_keys_its_own_included() -> None:
    visible = visible_keys(torch.zeros(1, 6), 0, 6, 0, None, window=3)
    assert visible is not None
    assert visible[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 1, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 1],
    ]


def test_what_a_window_hides_reaches_a_query_through_layers_below(ids: Tensor) -> None:
    config = {**SIZES, "model_type": "mistral", "sliding_window": WINDOW}
    model = Llama(LlamaConfig.from_hf(config)).init_weights(seed=7, std=0.2).eval()
    reach = 3 * (WINDOW - 1)  # of 3 layers: each hands on from W - 1 tokens back
    for token, reaches in ((11 - reach, True), (11 - reach - 1, False)):
        changed = ids.clone()
        changed[:, token] = (changed[:, token] + 1) % SIZES["vocab_size"]
        assert torch.equal(model(ids)[:, -1], model(changed)[:, -1]) != reaches

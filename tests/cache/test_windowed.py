"""The cache of a windowed layer is exact: the logits of the full cache, in less memory."""

from typing import Any

import pytest
import torch
import transformers
from feeding import feed
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_llama import CONFIG, random_ids, tiny_llama
from torch import Tensor

from kvlab.arithmetic.units import GIB
from kvlab.cache import KVCache, call_model, make_cache, rollback
from kvlab.cache.windowed import SlidingWindowLayer, windowed_cache
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama

MIXED = ["sliding_attention", "full_attention", "sliding_attention"]


def windowed_llama(window: int, layer_types: list[str] | None = None) -> Llama:
    changes = {"model_type": "ministral", "sliding_window": window, "layer_types": layer_types}
    return tiny_llama(**changes)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@given(
    window=st.integers(1, 9),
    chunks=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    includes_self=st.booleans(),
    mixed=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_any_chunking_gives_the_logits_of_the_full_cache(
    window: int, chunks: list[int], includes_self: bool, mixed: bool
) -> None:
    model_window = window if includes_self else window + 1  # the model counts the query itself
    model = windowed_llama(model_window, MIXED if mixed else None)
    ids = random_ids(2, sum(chunks))
    own = [None if seen is None else window for seen in model.config.layer_windows]
    cache = windowed_cache(own, includes_self=includes_self)
    pieces = list(ids.split(chunks, dim=1))
    close(feed(model, pieces, cache), feed(model, pieces, make_cache("growing", num_layers=3)))
    held = [min(model_window - 1, sum(chunks)) if seen else sum(chunks) for seen in own]
    assert cache.nbytes == sum(2 * 2 * 2 * 8 * 4 * tokens for tokens in held)
    assert cache.reserved_nbytes == cache.nbytes


@pytest.mark.parametrize("layer_types", [None, MIXED])
@pytest.mark.parametrize("chunks", [[12], [1] * 12, [5, 1, 6]], ids=str)
def test_it_runs_in_transformers_windowed_models(
    layer_types: list[str] | None, chunks: list[int]
) -> None:
    model, ids = windowed_llama(4, layer_types), random_ids(2, 12)
    config = CONFIG | {"sliding_window": 4, "layer_types": layer_types, "model_type": "ministral"}
    theirs = transformers.MinistralForCausalLM(transformers.MinistralConfig(**config)).eval()
    theirs.load_state_dict(model.state_dict())
    cache = windowed_cache(model.config.layer_windows)
    pieces = [call_model(theirs, piece, cache=cache)[0] for piece in ids.split(chunks, dim=1)]
    close(torch.cat(pieces, dim=1), model(ids))


def test_left_padding_changes_no_row() -> None:
    model, ids = windowed_llama(4), random_ids(2, 12)
    mask = torch.ones_like(ids)
    mask[1, :5] = 0
    cache = windowed_cache(model.config.layer_windows)
    prefill = model(ids[:, :9], attention_mask=mask[:, :9], cache=cache)
    step = model(ids[:, 9:], attention_mask=mask, cache=cache)
    alone = model(ids[1:, 5:])
    close(torch.cat([prefill, step], dim=1)[1:, 5:], alone)


@pytest.mark.parametrize(("includes_self", "stored"), [(True, 7), (False, 8)])
def test_k18_seen_stored_and_next_position_are_three_numbers(
    includes_self: bool, stored: int
) -> None:
    layer = SlidingWindowLayer(8, includes_self=includes_self)
    for length in (15, 1, 3, 1):
        states = torch.zeros(1, 2, length, 4)
        layer.update(states, states)
    assert layer.get_seq_length() == 20
    assert layer.num_kept() == stored
    assert layer.get_next_position() == 20
    cache = KVCache([layer])
    assert (cache.get_seq_length(), cache.get_next_position()) == (20, 20)


def test_k19_each_layer_has_its_own_mask_where_layers_hold_different_numbers() -> None:
    model = tiny_llama(
        model_type="ministral", sliding_window=5, num_hidden_layers=2, layer_types=MIXED[:2]
    )
    ids = random_ids(1, 10)
    cache = windowed_cache([4, None], includes_self=False)
    pieces = list(ids.split([6, 3, 1], dim=1))
    close(feed(model, pieces, cache), model(ids))
    token_slot = 2 * 2 * 8 * 4  # K and V x KV heads x head_dim x 4 bytes
    assert cache.nbytes == (4 + 10) * token_slot


@pytest.mark.parametrize(("tokens", "needed"), [(8192, 6.09375), (64, 64 * 24 / 2**14)])
def test_s08_a_windowed_layer_is_charged_its_window_and_never_more_than_the_context(
    tokens: int, needed: float
) -> None:
    sizes = {"num_hidden_layers": 24, "num_key_value_heads": 8, "head_dim": 64}
    kinds = ["sliding_attention", "full_attention"] * 12
    heads = {"num_attention_heads": 8, "sliding_window": 128, "model_type": "ministral"}
    config = LlamaConfig.from_hf(CONFIG | sizes | heads | {"layer_types": kinds})
    cache = windowed_cache(config.layer_windows, includes_self=False)
    states = torch.empty(32, 8, tokens, 64, dtype=torch.bfloat16, device="meta")
    for layer_idx in range(24):
        cache.update(states, states, layer_idx)
    assert cache.nbytes / GIB == needed


def test_it_shortens_until_the_window_is_full_and_then_refuses() -> None:
    model, ids = windowed_llama(8), random_ids(1, 12)
    cache = windowed_cache(model.config.layer_windows)
    model(ids[:, :7], cache=cache)
    cache.truncate_to(3)
    close(model(ids[:, 3:], cache=cache), model(ids)[:, 3:])
    with pytest.raises(Unsupported, match="5 have left the window"):
        cache.truncate_to(11)
    assert cache.get_seq_length() == 12
    cache.truncate_to(0)
    close(model(ids, cache=cache), model(ids))


def test_rollback_and_reordering_leave_the_right_tokens() -> None:
    model, ids = windowed_llama(4), random_ids(2, 10)
    cache = windowed_cache(model.config.layer_windows)
    model(ids[:, :8], cache=cache)
    with pytest.raises(KeyboardInterrupt), rollback(cache):
        model(ids[:, 8:], cache=cache)
        raise KeyboardInterrupt
    cache.select_rows(torch.tensor([1, 0, 1]))
    swapped = ids[[1, 0, 1]]
    close(model(swapped[:, 8:], cache=cache), model(swapped)[:, 8:])


@pytest.mark.parametrize("window", [0, -1, 2.0, None])
def test_a_window_that_is_no_number_of_tokens_is_refused(window: Any) -> None:
    with pytest.raises(InvalidArgument, match="sliding_window"):
        SlidingWindowLayer(window)

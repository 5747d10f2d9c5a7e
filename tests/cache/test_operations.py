"""Measure, shorten, continue: with our caches and with transformers'."""

from typing import Any

import pytest
import torch
import transformers

from kvlab.cache import (
    cache_length,
    cache_nbytes,
    cache_reserved_nbytes,
    require_empty,
    truncate_to,
    unseen_tokens,
)
from kvlab.errors import CacheInUse, InvalidArgument, Unsupported

OURS = ["growing", "preallocated"]
ALL = [*OURS, "dynamic", "static", "fp8"]
PER_TOKEN = 3 * 2 * 2 * 8  # elements: layers x K and V x KV heads x head_dim


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


def truncate_or_skip(cache: Any, n: int) -> None:
    try:
        truncate_to(cache, n)
    except Unsupported as reason:
        pytest.skip(f"{reason} on transformers {transformers.__version__}")


def lengths(cache: Any) -> list[int]:
    return [int(layer.get_seq_length()) for layer in cache.layers]


# -- measuring ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*OURS, "dynamic", "static"])
def test_bytes_held_are_those_of_the_formula(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache(name, capacity=12)
    assert cache_nbytes(cache) == 0
    for tokens in (5, 6, 8):
        llama(ids(2, tokens - cache_length(cache)), cache=cache)
        assert cache_nbytes(cache) == 2 * tokens * PER_TOKEN * 4
    reserved = 12 if name in ("preallocated", "static") else 8
    assert cache_reserved_nbytes(cache) == 2 * reserved * PER_TOKEN * 4


def test_an_fp8_cache_holds_one_byte_per_element_and_two_scales_a_layer(
    llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache("fp8")
    llama(ids(2, 5), cache=cache)
    assert cache_nbytes(cache) == 2 * 5 * PER_TOKEN + 3 * 2 * 4


@pytest.mark.parametrize("name", OURS)
def test_half_precision_takes_half_the_bytes(name: str, new_cache: Any) -> None:
    cache, tokens = new_cache(name), torch.zeros(1, 2, 5, 8, dtype=torch.bfloat16)
    for layer_idx in range(3):
        cache.update(tokens, tokens, layer_idx)
    assert cache_nbytes(cache) == cache.nbytes == 5 * PER_TOKEN * 2


def test_no_cache_has_no_length_and_no_bytes() -> None:
    assert cache_length(None) == cache_nbytes(None) == cache_reserved_nbytes(None) == 0


# -- shortening -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*OURS, "dynamic", "static"])
@pytest.mark.parametrize("keep", [0, 1, 6])
def test_every_exact_cache_can_be_shortened_and_continued(
    name: str, keep: int, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt, others = new_cache(name), ids(1, 10), ids(1, 4, seed=9)
    llama(prompt, cache=cache)
    truncate_or_skip(cache, keep)
    assert lengths(cache) == [keep] * 3
    history = torch.cat([prompt[:, :keep], others], dim=1)
    close(llama(others, cache=cache), llama(history)[:, keep:])


@pytest.mark.parametrize("name", [*OURS, "dynamic", "static"])
@pytest.mark.parametrize("n", [-1, 4])
def test_a_length_that_the_cache_does_not_have_is_refused(
    name: str, n: int, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache(name)
    llama(ids(1, 3), cache=cache)
    with pytest.raises(InvalidArgument, match="must be from 0 to 3"):
        truncate_to(cache, n)
    assert lengths(cache) == [3] * 3


def test_an_fp8_cache_says_that_it_cannot_be_shortened(
    llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache("fp8")
    llama(ids(1, 3), cache=cache)
    with pytest.raises(Unsupported, match="QuantizedCache cannot be shortened"):
        truncate_to(cache, 1)


@pytest.mark.parametrize("name", [*OURS, "dynamic"])
@pytest.mark.parametrize("n", [2.0, True, None, "2", float("nan")])
def test_a_length_that_is_no_whole_number_is_refused(
    name: str, n: Any, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache(name)
    llama(ids(1, 3), cache=cache)
    cuts = [lambda: truncate_to(cache, n)]
    if name in OURS:
        cuts += [lambda: cache.truncate_to(n), lambda: cache.drop_last(n)]
        cuts += [lambda: cache.layers[0].truncate_to(n)]
    for cut in cuts:
        with pytest.raises(InvalidArgument, match=r"n=.*: must be a whole number of tokens"):
            cut()
    assert lengths(cache) == [3] * 3


# -- continuing -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*OURS, "dynamic", "static"])
def test_new_tokens_alone_and_the_whole_history_continue_alike(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    history, first, second = ids(2, 9), new_cache(name), new_cache(name)
    for cache in (first, second):
        llama(history[:, :5], cache=cache)
    by_new = llama(unseen_tokens(first, new_ids=history[:, 5:]), cache=first)
    by_full = llama(unseen_tokens(second, full_ids=history), cache=second)
    assert torch.equal(by_new, by_full)
    close(by_new, llama(history)[:, 5:])


def test_a_history_shorter_than_the_cache_is_refused_with_both_numbers(
    llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache("growing")
    llama(ids(1, 5), cache=cache)
    with pytest.raises(InvalidArgument, match=r"4 tokens.*longer than the 5 tokens"):
        unseen_tokens(cache, full_ids=ids(1, 4))
    for wrong in ({}, {"new_ids": ids(1, 1), "full_ids": ids(1, 6)}):
        with pytest.raises(InvalidArgument, match="either new_ids or full_ids"):
            unseen_tokens(cache, **wrong)


@pytest.mark.parametrize("name", ALL)
def test_a_cache_with_an_earlier_prompt_is_refused_until_it_is_reset(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache(name)
    require_empty(cache)
    llama(ids(1, 5), cache=cache)
    with pytest.raises(CacheInUse, match="cache already holds 5 tokens"):
        require_empty(cache)
    if name in OURS:
        cache.reset()
        require_empty(cache)

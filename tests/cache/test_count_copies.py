"""Growing copies the past at each step, a buffer copies each token once: counted, not assumed."""

import pytest
import torch

from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.cache import make_cache
from kvlab.cache.count_copies import count_copies

SIZES = {"num_layers": 2, "num_kv_heads": 3, "head_dim": 4}


def copied(name: str, prompt: int, new: int) -> int:
    cache = make_cache(name, num_layers=SIZES["num_layers"], capacity=prompt + new)
    with count_copies() as count:
        for q_len in (prompt, *[1] * (new - 1)):
            states = torch.zeros(1, SIZES["num_kv_heads"], q_len, SIZES["head_dim"])
            for layer in range(SIZES["num_layers"]):
                cache.update(states, states, layer)
    return count.num_bytes


@pytest.mark.parametrize(("prompt", "new"), [(1, 1), (5, 3), (1, 20)])
def test_growing_copies_as_many_rows_as_recomputing_would_compute(prompt: int, new: int) -> None:
    per_token = kv_bytes_per_token(**SIZES, bytes_per_element=4)
    assert copied("growing", prompt, new) == per_token * token_forwards_uncached(prompt, new)


@pytest.mark.parametrize(("prompt", "new"), [(1, 1), (5, 3), (1, 20)])
def test_a_preallocated_buffer_copies_each_token_once(prompt: int, new: int) -> None:
    per_token = kv_bytes_per_token(**SIZES, bytes_per_element=4)
    assert copied("preallocated", prompt, new) == per_token * token_forwards_cached(prompt, new)


def test_the_default_cache_of_transformers_grows_too() -> None:
    from transformers import DynamicCache

    cache, one = DynamicCache(), torch.zeros(1, 3, 1, 4)
    with count_copies() as count:
        for _ in range(20):
            cache.update(one, one, 0)
    assert count.num_bytes == 2 * 3 * 4 * 4 * token_forwards_uncached(1, 20)


def test_views_and_arithmetic_are_no_copies() -> None:
    ones = torch.ones(4, 4)
    with count_copies() as count:
        assert ones[:2].transpose(0, 1).shape == (4, 2)
        assert (ones + ones).sum() == 32
    assert count.num_bytes == 0


def test_after_the_block_nothing_is_counted_any_more() -> None:
    with count_copies() as count:
        torch.zeros(2).clone()
    torch.zeros(2).clone()
    assert (count.calls, count.num_bytes) == (1, 8)

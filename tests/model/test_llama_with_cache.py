"""However a prompt is cut, padded or cached, our Llama gives the logits of one whole run."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
import torch
from feeding import feed
from torch import Tensor
from transformers.cache_utils import DynamicCache

from kvlab.model.llama import Llama
from kvlab.model.rope_config import ROPE_KINDS

MakePair = Callable[..., Any]
NewCache = Callable[..., Any]
MakeLlama = Callable[..., Llama]
CACHES = ("dynamic", "static")
VOCAB_SIZE = 61
CUTS = [[n + 1 for n in range(6) if bits[n]] for bits in product((0, 1), repeat=6)]


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    """Keep no graph."""
    with torch.no_grad():
        yield


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", CACHES)
def test_all_64_ways_to_cut_a_prompt_of_7_give_the_logits_of_transformers(
    make_pair: MakePair, new_cache: NewCache, prompt: Tensor, name: str
) -> None:
    pair = make_pair()
    expected = pair.reference(prompt)
    assert len(CUTS) == 64
    for cuts in CUTS:
        chunks = list(prompt.tensor_split(cuts, dim=1))
        assert_close(feed(pair.ours, chunks, new_cache(name)), expected)


@pytest.mark.parametrize("kind", ROPE_KINDS)
def test_cached_and_recomputed_logits_agree_past_the_old_length(
    make_pair: MakePair, kind: str
) -> None:
    pair = make_pair(rope=kind)
    input_ids = torch.randint(0, VOCAB_SIZE, (1, 24))
    cached = feed(pair.ours, list(input_ids.split(1, dim=1)), DynamicCache())
    assert_close(cached, pair.ours(input_ids))
    assert_close(cached, pair.reference(input_ids))


@pytest.mark.parametrize(
    ("dtype", "share"), [(torch.float32, 1e-5), (torch.bfloat16, 0.02), (torch.float16, 0.02)]
)
def test_cached_logits_differ_from_whole_ones_by_rounding_only(
    make_llama: MakeLlama, dtype: torch.dtype, share: float
) -> None:
    model = make_llama().init_weights(seed=7, std=0.12).to(dtype)
    input_ids = torch.randint(0, VOCAB_SIZE, (1, 24))
    whole = model(input_ids).float()
    cached = feed(model, list(input_ids.split(1, dim=1)), DynamicCache()).float()
    assert (cached - whole).abs().max() <= share * whole.abs().max()
    if dtype == torch.float32:
        assert torch.equal(cached.argmax(-1), whole.argmax(-1))


class Watcher(DynamicCache):
    """A cache that asks for the attention weights."""

    wants_weights = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, Tensor]] = []

    def observe(self, attention_weights: Tensor, layer_idx: int) -> None:
        self.seen.append((layer_idx, attention_weights))


def test_a_cache_that_wants_weights_gets_them_and_logits_stay_the_same(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    model, watcher = make_llama(), Watcher()
    logits = feed(model, list(prompt.tensor_split([3, 6], dim=1)), watcher)
    assert_close(logits, model(prompt), 1e-5)
    assert [layer_idx for layer_idx, _ in watcher.seen] == [0, 1, 0, 1, 0, 1]
    shapes = [tuple(weights.shape) for _, weights in watcher.seen[::2]]
    assert shapes == [(2, 4, 3, 3), (2, 4, 3, 6), (2, 4, 1, 7)]
    for _, weights in watcher.seen:
        assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), 1e-5)
    assert float(watcher.seen[0][1][0, 0, 0, 1]) == 0.0


def test_a_cache_that_wants_no_weights_is_not_asked_to_observe(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    watcher = Watcher()
    watcher.wants_weights = False
    make_llama()(prompt, cache=watcher)
    assert watcher.seen == []


def test_one_cached_step_makes_no_copy_of_the_keys(
    make_llama: MakeLlama, new_cache: NewCache
) -> None:
    """What is allocated in a step on a static cache does not depend on the cache's length."""
    model, biggest = make_llama(), []
    for capacity in (1024, 4096):
        cache = new_cache("static", capacity)
        model(torch.tensor([[1, 2, 3]]), cache=cache)
        with torch.profiler.profile(profile_memory=True) as profile:
            model(torch.tensor([[4]]), cache=cache)
        biggest.append(max(event.cpu_memory_usage for event in profile.events()))
    bytes_of_keys = 1024 * 2 * 8 * 4
    assert biggest[1] - biggest[0] < 3 * bytes_of_keys / 2

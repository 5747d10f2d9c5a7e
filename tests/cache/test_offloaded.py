"""Offloaded layers: the answers of the full cache to the bit, every byte that moves counted."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.cache import (
    cache_nbytes,
    call_model,
    generate_with,
    make_cache,
    rollback,
    transformers_cache,
)
from kvlab.cache.arrival import Arrival
from kvlab.cache.measure import storage_nbytes
from kvlab.cache.offloaded import OffloadedLayer
from kvlab.cache.offloaded_cache import OffloadedCache
from kvlab.errors import CacheFull, InvalidArgument, KvlabError
from kvlab.model.decode import generate
from kvlab.model.llama import Llama

NUM_LAYERS = 3
TOKEN_NBYTES = 2 * 2 * 8 * 4  # of one layer of the tiny Llama: K and V, 2 heads of 8, float32
TIERS = pytest.mark.parametrize("tier", ["host", "disk"])
MASK = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def offloaded(tier: str, num_layers: int = NUM_LAYERS, **options: Any) -> OffloadedCache:
    cache = make_cache("offloaded", num_layers=num_layers, tier=tier, **options)
    assert isinstance(cache, OffloadedCache)
    return cache


def growing() -> Any:
    return make_cache("growing", num_layers=NUM_LAYERS)


def in_pieces(model: Any, prompt: torch.Tensor, pieces: list[int], cache: Any) -> torch.Tensor:
    """Return the logits of all tokens, from our Llama or from transformers'."""
    ours = isinstance(model, Llama)
    parts = prompt.split(pieces, dim=1)
    runs = (model(p, cache=cache) if ours else call_model(model, p, cache=cache)[0] for p in parts)
    return torch.cat(list(runs), dim=1)


# -- the same answers -----------------------------------------------------------------------


@TIERS
@pytest.mark.parametrize("of", ["llama", "hf_llama"])
@pytest.mark.parametrize("pieces", [[9], [1] * 9, [4, 1, 3, 1], [2, 7]], ids=str)
def test_logits_equal_those_of_the_full_cache_to_the_bit(
    tier: str, of: str, pieces: list[int], request: Any, ids: Any
) -> None:
    model, prompt = request.getfixturevalue(of), ids(2, 9)
    cache, full = offloaded(tier), growing()
    logits = in_pieces(model, prompt, pieces, cache)
    assert torch.equal(logits, in_pieces(model, prompt, pieces, full))
    assert cache.nbytes == full.nbytes == cache_nbytes(cache) == 2 * 9 * NUM_LAYERS * TOKEN_NBYTES
    for layer, other in zip(cache.layers, full.layers, strict=True):
        for states, expected in zip(layer.held(), other.held(), strict=True):
            assert torch.equal(states, expected.cpu())


@TIERS
def test_text_in_a_padded_batch_is_the_same(tier: str, llama: Any, ids: Any) -> None:
    prompt = ids(2, 7)
    options = {"max_new_tokens": 8, "attention_mask": MASK, "chunk_size": 3, "keep_logits": True}
    ours = list(generate(llama, prompt, cache=offloaded(tier), **options))
    full = list(generate(llama, prompt, cache=growing(), **options))
    assert [step.token_ids for step in ours] == [step.token_ids for step in full]
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(ours, full, strict=True))


@TIERS
@pytest.mark.parametrize(
    "options",
    [{"num_beams": 3}, {"do_sample": True, "num_return_sequences": 3, "seed": 3},
     {"attention_mask": MASK, "num_beams": 2}],
    ids=["beams", "samples", "padding and beams"],
)  # fmt: skip
def test_transformers_generate_writes_the_same(
    tier: str, options: dict[str, Any], hf_llama: Any, ids: Any
) -> None:
    prompt = ids(2, 7)
    if "attention_mask" in options:
        options = options | {"attention_mask": MASK.to(prompt.device)}
    ours, theirs = (
        generate_with(hf_llama, prompt, max_new_tokens=6, cache=cache, **options)
        for cache in (offloaded(tier), transformers_cache("dynamic", num_layers=NUM_LAYERS))
    )
    assert torch.equal(ours, theirs)


@TIERS
def test_a_draft_model_can_roll_the_cache_back(tier: str, hf_llama: Any, ids: Any) -> None:
    prompt = ids(1, 6)
    drafted = generate_with(
        hf_llama, prompt, max_new_tokens=10, cache=offloaded(tier), prompt_lookup_num_tokens=3
    )
    assert torch.equal(drafted, generate_with(hf_llama, prompt, max_new_tokens=10))


@TIERS
def test_a_layer_alone_fetches_late_and_gives_the_same(tier: str) -> None:
    layer, full = OffloadedLayer(tier=tier), make_cache("growing", num_layers=1).layers[0]
    for q_len in (4, 1, 2):
        tokens = torch.randn(1, 2, q_len, 8)
        assert all(map(torch.equal, layer.update(tokens, -tokens), full.update(tokens, -tokens)))
    assert (layer.traffic.fetched_ahead, layer.traffic.fetched_late) == (0, 2)


@TIERS
def test_a_cache_filled_in_inference_mode_can_be_used_outside_of_it(
    tier: str, llama: Any, ids: Any
) -> None:
    cache, prompt = offloaded(tier), ids(2, 9)
    with torch.inference_mode():
        llama(prompt[:, :4], cache=cache)
        cache.select_rows(torch.tensor([0, 1]))
    torch.testing.assert_close(
        llama(prompt[:, 4:], cache=cache), llama(prompt)[:, 4:], rtol=0, atol=1e-4
    )


@TIERS
def test_gradients_do_not_reach_what_rests_on_the_tier(tier: str) -> None:
    layer, tokens = OffloadedLayer(tier=tier), torch.ones(1, 1, 2, 4, requires_grad=True)
    with torch.enable_grad():
        keys, _ = layer.update(tokens, tokens)
        keys.sum().backward()
    assert torch.equal(tokens.grad, torch.ones_like(tokens))
    assert not layer.held()[0].requires_grad


# -- what moves and what lies where ---------------------------------------------------------


@TIERS
@pytest.mark.parametrize(("prompt_tokens", "new_tokens"), [(6, 5), (1, 3)])
def test_every_byte_that_moves_is_counted(
    tier: str, prompt_tokens: int, new_tokens: int, llama: Any, ids: Any
) -> None:
    cache = offloaded(tier)
    list(generate(llama, ids(1, prompt_tokens), max_new_tokens=new_tokens, cache=cache))
    settle(cache)
    last = prompt_tokens + new_tokens - 1  # positions held at the end
    past = sum(range(prompt_tokens, last))  # fetched by each decode step, one after the other
    ahead = last  # the first layer's tokens, fetched for a pass that never came
    assert cache.traffic.bytes_in == (NUM_LAYERS * past + ahead) * TOKEN_NBYTES
    assert cache.traffic.bytes_out == NUM_LAYERS * last * TOKEN_NBYTES
    assert cache.traffic.fetched_ahead == NUM_LAYERS * (new_tokens - 1)
    assert cache.traffic.fetched_late == 0


def settle(cache: OffloadedCache) -> None:
    """Wait for what is still on its way, and let go of it."""
    for layer in cache.layers:
        if layer.arriving is not None:
            layer.arriving.wait()
        layer.offload()


@TIERS
def test_at_most_two_layers_lie_on_the_device(tier: str, llama: Any, ids: Any) -> None:
    cache, last = offloaded(tier), 20 + 8 - 1
    list(generate(llama, ids(1, 20), max_new_tokens=8, cache=cache))
    copies = 2 if tier == "host" else 3  # a file is read into a buffer before it is turned round
    assert (
        TOKEN_NBYTES * last
        <= cache.traffic.peak_device_nbytes
        <= copies * TOKEN_NBYTES * (last + 1)
    )
    settle(cache)
    assert cache.traffic.device_nbytes == 0


def test_on_one_machine_the_host_tier_takes_the_memory_and_the_disk_tier_does_not(
    llama: Any, ids: Any
) -> None:
    host, disk = offloaded("host"), offloaded("disk")
    for cache in (host, disk):
        llama(ids(1, 9), cache=cache)
        settle(cache)
    assert sum(map(storage_nbytes, host.layers)) == host.reserved_nbytes >= host.nbytes
    assert sum(map(storage_nbytes, disk.layers)) == 0
    assert disk.reserved_nbytes == disk.nbytes == 9 * NUM_LAYERS * TOKEN_NBYTES


def test_room_fetched_for_another_number_of_tokens_is_mended() -> None:
    layer, tokens = OffloadedLayer(), torch.randn(1, 1, 5, 4)
    layer.update(tokens[:, :, :3], tokens[:, :, :3])
    layer.prefetch(room=1)
    keys, _ = layer.update(tokens[:, :, 3:], tokens[:, :, 3:])
    assert torch.equal(keys, tokens) and layer.traffic.fetched_ahead == 1


def test_what_was_fetched_for_other_tokens_is_not_used() -> None:
    layer, tokens = OffloadedLayer(), torch.randn(1, 1, 5, 4)
    layer.update(tokens[:, :, :3], tokens[:, :, :3])
    layer.prefetch()
    layer.truncate_to(2)
    keys, _ = layer.update(-tokens[:, :, :1], tokens[:, :, :1])
    assert torch.equal(keys, torch.cat([tokens[:, :, :2], -tokens[:, :, :1]], dim=2))


# -- going back, reordering, copying --------------------------------------------------------

small = st.integers(0, 5)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("append and fail"), st.integers(1, 3)),
        st.tuples(st.just("truncate and fail"), small),
        st.tuples(st.just("truncate"), small),
        st.tuples(st.just("select"), st.lists(st.integers(0, 1), min_size=2, max_size=2)),
        st.tuples(st.just("clone"), small),
        st.tuples(st.just("reset"), small),
    ),
    max_size=8,
)


class Twins:
    """An offloaded and a growing cache to which the same is done."""

    def __init__(self, tier: str) -> None:
        self.caches, self.number = [offloaded(tier, 2), make_cache("growing", num_layers=2)], 0.0

    def append(self, n: int) -> None:
        """Push n new tokens through both, and compare what attention would see."""
        self.number += 1
        states = torch.arange(2 * 2 * n * 3).view(2, 2, n, 3) / 64 + self.number
        for layer_idx in range(2):
            found = [cache.update(states + layer_idx, -states, layer_idx) for cache in self.caches]
            assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])

    def do(self, name: str, argument: Any) -> None:
        """Do one operation to both."""
        length = self.caches[0].get_seq_length()
        if name.endswith("fail"):
            with (
                pytest.raises(KeyboardInterrupt),
                rollback(self.caches[0]),
                rollback(self.caches[1]),
            ):
                if name.startswith("truncate"):
                    self.do("truncate", argument)
                self.append(max(argument, 1))
                raise KeyboardInterrupt
        elif name == "append":
            self.append(argument)
        elif name == "truncate":
            for cache in self.caches:
                cache.truncate_to(min(argument, length))
        elif name == "select" and length:
            for cache in self.caches:
                cache.select_rows(torch.tensor(argument))
        elif name == "clone":
            old, self.caches = self.caches, [cache.clone() for cache in self.caches]
            for cache in old:
                cache.reset()
        elif name == "reset":
            for cache in self.caches:
                cache.reset()


@TIERS
@settings(max_examples=30, deadline=None)
@given(operations=operations)
def test_whatever_is_done_it_holds_what_a_growing_cache_holds(
    tier: str, operations: list[tuple[str, Any]]
) -> None:
    twins = Twins(tier)
    for name, argument in operations:
        twins.do(name, argument)
        ours, full = twins.caches
        assert (ours.get_seq_length(), ours.nbytes) == (full.get_seq_length(), full.nbytes)
        for layer, other in zip(ours.layers, full.layers, strict=True):
            if ours.get_seq_length():
                assert all(map(torch.equal, layer.held(), other.held()))


@TIERS
def test_a_clone_and_a_deep_copy_share_no_memory_and_count_anew(
    tier: str, llama: Any, ids: Any
) -> None:
    cache, prompt = offloaded(tier), ids(1, 8)
    llama(prompt[:, :5], cache=cache)
    for twin in (cache.clone(), copy.deepcopy(cache)):
        assert (twin.nbytes, twin.traffic.bytes_out) == (cache.nbytes, 0)
        llama(ids(1, 3, seed=9), cache=twin)
    assert torch.equal(
        llama(prompt[:, 5:], cache=cache), in_pieces(llama, prompt, [5, 3], growing())[:, 5:]
    )


@TIERS
def test_after_reset_a_cache_is_bit_equal_to_a_new_one(tier: str, llama: Any, ids: Any) -> None:
    cache, question = offloaded(tier), ids(1, 6, seed=2)
    llama(ids(2, 9), cache=cache)
    cache.reset()
    assert (cache.get_seq_length(), cache.nbytes, cache.reserved_nbytes) == (0, 0, 0)
    assert torch.equal(llama(question, cache=cache), llama(question, cache=offloaded(tier)))


@TIERS
def test_an_empty_cache_can_be_cloned_shortened_reordered_and_asked_to_fetch(tier: str) -> None:
    cache = offloaded(tier).clone()
    cache.truncate_to(0)
    cache.reorder_cache(torch.tensor([1, 0]))
    cache.layers[0].prefetch()
    cache.layers[0].offload()
    assert cache.get_seq_length() == cache.nbytes == cache.reserved_nbytes == 0


# -- failures -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tier": "cloud"}, "tier='cloud': must be one of host, disk"),
        ({"tier": "host", "folder": "/tmp"}, "folder='/tmp': is for tier='disk' only"),
        (
            {"tier": "disk", "folder": "no/such"},
            "folder='no/such': must be a folder in which files",
        ),
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        OffloadedLayer(**options)


def test_a_disk_that_is_full_in_the_middle_of_a_pass_leaves_the_cache_as_it_was(
    tmp_path: Path, llama: Any, ids: Any
) -> None:
    resource = pytest.importorskip("resource")
    cache, prompt = offloaded("disk", folder=tmp_path), ids(1, 9)
    llama(prompt[:, :4], cache=cache)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = 6 * TOKEN_NBYTES
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(CacheFull, match="no room for") as full, rollback(cache):
            llama(prompt[:, 4:], cache=cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(tmp_path) in str(full.value)
    assert [layer.get_seq_length() for layer in cache.layers] == [4] * NUM_LAYERS
    expected = in_pieces(llama, prompt, [4, 5], growing())[:, 4:]
    assert torch.equal(llama(prompt[:, 4:], cache=cache), expected)


def test_a_fetch_that_fails_ahead_of_time_is_told_when_its_tokens_are_needed() -> None:
    cache, tokens = offloaded("disk", 2), torch.randn(1, 2, 3, 8)
    for layer_idx in range(2):
        cache.update(tokens, tokens, layer_idx)
    cache.layers[1].resting.file.truncate(5)
    cache.update(tokens, tokens, 0)
    with pytest.raises(KvlabError, match="the file ends before 3 tokens"):
        cache.update(tokens, tokens, 1)
    assert [layer.get_seq_length() for layer in cache.layers] == [6, 3]


@TIERS
def test_tokens_of_another_kind_are_refused_and_change_nothing(tier: str) -> None:
    layer, tokens = OffloadedLayer(tier=tier), torch.randn(1, 2, 3, 8)
    layer.update(tokens, tokens)
    for wrong in (tokens[:, :1], tokens.half(), tokens[..., :4]):
        with pytest.raises(InvalidArgument, match="key_states"):
            layer.update(wrong, wrong)
    assert torch.equal(layer.held()[0], tokens)


# -- beside transformers' own ----------------------------------------------------------------


@pytest.mark.gpu
@on_a_gpu
def test_logits_are_those_of_transformers_own_offloaded_cache(hf_llama: Any, ids: Any) -> None:
    theirs = transformers.DynamicCache(config=hf_llama.config, offloading=True)
    ours, prompt = offloaded("host"), ids(2, 9)
    pieces = [4, 1, 3, 1]
    found, expected = (in_pieces(hf_llama, prompt, pieces, cache) for cache in (ours, theirs))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    settle(ours)
    assert ours.traffic.device_nbytes == 0 and ours.layers[0].resting.rows.is_pinned()


@pytest.mark.gpu
@on_a_gpu
@TIERS
def test_a_long_cache_takes_less_of_the_gpu_than_the_full_one(tier: str) -> None:
    tokens, used = torch.randn(1, 8, 512, 64, device="cuda"), {}
    for name, make in {
        "full": lambda: make_cache("growing", num_layers=16),
        tier: lambda: offloaded(tier, 16),
    }.items():
        cache = make()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        for _ in range(8):
            for layer_idx in range(16):
                keys, values = cache.update(tokens, tokens, layer_idx)
                assert torch.equal(keys[:, :, -512:], tokens) and torch.equal(values, keys)
                del keys, values
        used[name] = torch.cuda.max_memory_allocated() - before
    assert used[tier] < used["full"] / 2
    assert isinstance(cache.layers[0].arriving, Arrival)

"""Scattered over blocks in any order, shared and copied, the tokens give the logits they gave."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from kvlab.arithmetic.memory import kv_bytes
from kvlab.cache import make_cache
from kvlab.cache.paged import PagedCache
from kvlab.errors import InvalidArgument, OutOfBlocks
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.paged_run import generate_paged, step_paged
from kvlab.paging import BlockManager, ExtraKeys
from kvlab.paging.rules import broken_rules

EXACT = 1e-10  # float64
PROMPTS = {"ann": list(range(1, 8)), "bob": [9, 9, 2], "eve": list(range(20, 33)), "joe": [5]}


@pytest.fixture(scope="module", name="llama")
def exact_llama(llama: Llama) -> Llama:
    """The Llama of the other tests in float64, where only real faults make a difference."""
    return deepcopy(llama).double()


@pytest.fixture
def paged(llama: Llama) -> Callable[..., PagedCache]:
    """Return a function that makes a paged cache, shuffled and full of NaN."""

    def make(
        num_blocks: int = 64, block_size: int = 4, seed: int = 0, **options: Any
    ) -> PagedCache:
        order = random.Random(seed).sample(range(num_blocks), num_blocks)
        weight = llama.lm_head.weight
        cache = PagedCache.of(
            llama.config,
            num_blocks=num_blocks,
            block_size=block_size,
            dtype=weight.dtype,
            device=weight.device,
            block_order=order,
            **options,
        )
        cache.store.keys.fill_(float("nan"))
        cache.store.values.fill_(float("nan"))
        return cache

    return make


def alone(model: Llama, tokens: list[int], *, chunk: int | None = None) -> Tensor:
    """Return the logits after the last of these tokens, from a contiguous cache of their own."""
    ids = torch.tensor([tokens], device=model.lm_head.weight.device)
    cache = make_cache("growing", num_layers=model.config.num_layers)
    for piece in ids.split(chunk or len(tokens), dim=1):
        logits = model(piece, cache=cache)
    return logits[0, -1]


def assert_same(
    model: Llama, cache: PagedCache, logits: dict[str, Tensor], atol: float = EXACT
) -> None:
    """Compare each sequence with a run of its own; every rule of the pool must hold."""
    for name, row in logits.items():
        torch.testing.assert_close(row, alone(model, cache.tokens[name]), rtol=0, atol=atol)
    assert broken_rules(cache.manager) == []


def greedy(logits: dict[str, Tensor]) -> dict[str, list[int]]:
    """Return each sequence's next token, as the next step's input."""
    return {name: [int(row.argmax())] for name, row in logits.items()}


@pytest.mark.parametrize("block_size", [1, 2, 3, 7, 16, 64, 256])
def test_sequences_of_different_lengths_decode_as_if_each_had_a_contiguous_cache(
    llama: Llama, paged: Callable[..., PagedCache], block_size: int
) -> None:
    cache = paged(num_blocks=4 + 60 // block_size, block_size=block_size, seed=block_size)
    logits = step_paged(llama, cache, PROMPTS)
    for _ in range(6):
        assert_same(llama, cache, logits)
        logits = step_paged(llama, cache, greedy(logits))
    assert_same(llama, cache, logits)


@pytest.mark.parametrize("block_size", [1, 7, 16])
def test_in_float32_the_logits_are_the_same_to_1e_5(block_size: int) -> None:
    sizes = {"num_heads": 4, "num_kv_heads": 2, "head_dim": 8, "hidden_size": 32}
    config = LlamaConfig(**sizes, num_layers=3, intermediate_size=48, vocab_size=61, max_seq_len=64)
    model = Llama(config).init_weights(seed=7, std=0.1).eval()
    cache = PagedCache.of(config, num_blocks=100, block_size=block_size)
    logits = step_paged(model, cache, PROMPTS)
    for _ in range(12):
        assert_same(model, cache, logits, atol=1e-5)
        logits = step_paged(model, cache, greedy(logits))


def test_prompts_in_chunks_and_single_tokens_run_side_by_side(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    cache = paged(block_size=3)
    logits = step_paged(llama, cache, {"ann": PROMPTS["ann"]})
    assert_same(llama, cache, logits)
    first = step_paged(llama, cache, {"eve": PROMPTS["eve"][:5], **greedy(logits)})
    assert_same(llama, cache, first)
    decoding = {"ann": greedy(first)["ann"]}
    second = step_paged(llama, cache, {**decoding, "eve": PROMPTS["eve"][5:], "joe": [5]})
    assert_same(llama, cache, second)
    assert cache.tokens["eve"] == PROMPTS["eve"]


@pytest.mark.parametrize("seed", range(3))
def test_random_steps_forks_and_cuts_keep_every_sequence_right(
    llama: Llama, paged: Callable[..., PagedCache], seed: int
) -> None:
    rng = random.Random(seed)
    cache = paged(num_blocks=20, block_size=rng.choice([1, 2, 5]), seed=seed)
    for number in range(40):
        names = list(cache.tokens)
        new = {name: [rng.randrange(61)] for name in names if rng.random() < 0.6}
        if rng.random() < 0.5:
            new[number] = [1] * rng.randint(1, 4) + [rng.randrange(61) for _ in range(3)]
        try:
            if new:
                assert_same(llama, cache, step_paged(llama, cache, new))
        except OutOfBlocks:
            cache.free(rng.choice(names))
        names = list(cache.tokens)
        if names and rng.random() < 0.4:
            cache.fork(rng.choice(names), f"fork {number}")
        if names and rng.random() < 0.3:
            name = rng.choice(names)
            cache.truncate(name, rng.randint(1, len(cache.tokens[name])))
        if len(names) > 4 or any(len(tokens) > 40 for tokens in cache.tokens.values()):
            cache.free(max(cache.tokens, key=lambda name: len(cache.tokens[name])))
    assert cache.manager.stats().prefix_hit_tokens > 0
    assert cache.manager.stats().copied_blocks > 0 or cache.manager.block_size == 1


def test_a_fork_copies_one_block_and_leaves_its_parents_bytes_alone(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    cache = paged()
    step_paged(llama, cache, {"parent": [1, 2, 3, 4, 5, 6]})
    cache.fork("parent", "child")
    tail = cache.manager.block_table("parent")[1]
    before = cache.store.keys[:, tail, :2].clone()
    assert_same(llama, cache, step_paged(llama, cache, {"child": [7]}))
    assert torch.equal(cache.store.keys[:, tail, :2], before)
    assert_same(llama, cache, step_paged(llama, cache, {"parent": [8], "child": [9]}))
    assert (cache.manager.num_used, cache.manager.stats().copied_blocks) == (3, 1)


def test_nan_in_the_three_spare_slots_of_13_tokens_reaches_nothing(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    tokens = list(range(1, 14))
    cache = paged(num_blocks=4, block_size=4)
    step_paged(llama, cache, {"a": tokens[:12]})
    logits = step_paged(llama, cache, {"a": tokens[12:]})["a"]
    spare = cache.store.keys.view(3, 16, 2, 8).isnan().all(-1).all(-1).sum(1)
    assert spare.tolist() == [3, 3, 3]
    torch.testing.assert_close(logits, alone(llama, tokens, chunk=12), rtol=0, atol=EXACT)


def test_slots_behind_the_last_token_are_never_read(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    runs = []
    for garbage in (0.0, 1e4, float("inf")):
        cache = paged(num_blocks=4, block_size=4)
        step_paged(llama, cache, {"a": list(range(1, 13))})
        table = cache.manager.block_table("a")
        free = [b for b in range(4) if b not in table]
        cache.store.keys[:, free] = cache.store.values[:, free] = garbage
        runs.append(step_paged(llama, cache, {"a": [13]})["a"])
        assert len(cache.manager.slot_mapping("a", 0, 13)) == 13
    assert torch.equal(runs[0], runs[1])
    assert torch.equal(runs[0], runs[2])


def test_a_prefix_hit_gives_the_logits_of_a_run_without_it(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    system = [3, 1, 4, 1, 5, 9, 2, 6]
    cache = paged(num_blocks=12, seed=5)
    step_paged(llama, cache, {"first": [*system, 11, 12]})
    step_paged(llama, cache, {"other": list(range(30, 41))})  # what is free now lies anywhere
    cache.free("first")
    with cache.step({"second": [*system, 13]}) as batch:
        assert batch.spans[0][1:] == (8, 9)  # one token to run
        logits = llama(batch.input_ids, cache=batch, attention_mask=batch.attention_mask)
    assert_same(llama, cache, {"second": logits[0, -1]})


def test_two_questions_after_one_prompt_leave_the_prompts_bytes_untouched(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    prompt = [3, 1, 4, 1, 5]
    cache = paged(block_size=1)
    step_paged(llama, cache, {"prompt": prompt})
    table = cache.manager.block_table("prompt")
    before = cache.store.keys[:, table].clone(), cache.store.values[:, table].clone()
    for name, question in (("first", [7, 8, 9]), ("second", [10, 11, 12])):
        cache.fork("prompt", name)
        assert_same(llama, cache, step_paged(llama, cache, {name: question}))
    assert len(cache.tokens["prompt"]) == 5
    assert torch.equal(cache.store.keys[:, table], before[0])
    assert torch.equal(cache.store.values[:, table], before[1])


def test_tenants_with_their_own_salt_get_the_same_answer_from_blocks_of_their_own(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    cache, prompt = paged(), list(range(1, 10))
    hits = []
    for name, salt in (("a1", "a"), ("b1", "b"), ("a2", "a")):
        before = cache.manager.stats().prefix_hit_tokens
        keys = {name: ExtraKeys(salt=salt)}
        assert_same(llama, cache, step_paged(llama, cache, {name: prompt}, extra_keys=keys))
        hits.append(cache.manager.stats().prefix_hit_tokens - before)
    assert hits == [0, 0, 8]


def test_a_row_that_stopped_gets_no_more_tokens_and_the_others_go_on(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    solo = {
        name: generate_paged(llama, paged(), {name: PROMPTS[name]}, max_new_tokens=6)[name]
        for name in ("ann", "bob")
    }
    cache, stop = paged(), solo["bob"][1]
    for start in range(0, 7, 3):  # the prompt of 7 in chunks of 3; the one of 3 is done at once
        chunk = {name: PROMPTS[name][start : start + 3] for name in ("ann", "bob")}
        logits = step_paged(llama, cache, {name: ids for name, ids in chunk.items() if ids})
    assert len(cache.tokens["bob"]) == 3
    assert greedy(logits)["ann"] == solo["ann"][:1]
    both = generate_paged(
        llama, paged(), {n: PROMPTS[n] for n in solo}, max_new_tokens=6, stop_ids=[stop]
    )
    expected = solo["bob"][: solo["bob"].index(stop) + 1]
    assert both["bob"] == expected
    assert both["ann"] == solo["ann"] or stop in solo["ann"]


@pytest.mark.parametrize("how", ["recompute", "swap"])
def test_a_preempted_sequence_goes_on_as_if_nothing_had_happened(
    llama: Llama, paged: Callable[..., PagedCache], how: str
) -> None:
    whole = generate_paged(llama, paged(), {"a": [1, 2, 3]}, max_new_tokens=8)["a"]
    cache, host = paged(num_blocks=6), paged(num_blocks=4, seed=3).store
    part = generate_paged(llama, cache, {"a": [1, 2, 3]}, max_new_tokens=4)["a"]
    tokens, table = cache.tokens["a"], cache.manager.block_table("a")
    cache.store.copy_blocks_to(host, list(zip(table, range(len(table)), strict=True)))
    cache.free("a")
    step_paged(llama, cache, {"b": list(range(40, 60))})  # takes what was idle
    cache.free("b")
    if how == "recompute":
        step_paged(llama, cache, {"a": tokens})
    else:
        cache.manager.allocate("a", len(tokens))
        back = list(enumerate(cache.manager.block_table("a")))
        host.copy_blocks_to(cache.store, back)
        cache.tokens["a"] = tokens
        cache.manager.commit("a", tokens)
    for _ in range(4):
        part += greedy(step_paged(llama, cache, {"a": part[-1:]}))["a"]
    assert part == whole


def test_a_windowed_model_runs_on_the_blocks_that_are_still_in_its_window() -> None:
    config = LlamaConfig(
        num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, hidden_size=32,
        intermediate_size=48, vocab_size=61, max_seq_len=64, sliding_window=6,
    )  # fmt: skip
    model = Llama(config).init_weights(seed=7, std=0.3).double().eval()
    options = {"prefix_caching": False, "sliding_window": 6, "dtype": torch.float64}
    cache = PagedCache.of(config, num_blocks=9, block_size=4, **options)
    cache.store.keys.fill_(float("nan"))
    cache.store.values.fill_(float("nan"))
    logits = step_paged(model, cache, {name: PROMPTS[name] for name in ("ann", "bob")})
    for _ in range(30):
        assert_same(model, cache, logits)
        logits = step_paged(model, cache, greedy(logits))
    assert cache.manager.num_used <= 6
    assert cache.manager.block_table("ann")[:7] == [-1] * 7


def test_bytes_are_tokens_times_the_formula_and_blocks_times_their_size(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    cache, sizes = paged(num_blocks=16), {"num_kv_heads": 2, "head_dim": 8, "bytes_per_element": 8}
    step_paged(llama, cache, PROMPTS)
    held = sum(map(len, PROMPTS.values()))
    assert cache.nbytes == kv_bytes(num_layers=3, **sizes, seq_len=held)
    assert cache.store.block_nbytes == kv_bytes(num_layers=3, **sizes, seq_len=4)
    blocks = [-(-len(tokens) // 4) for tokens in PROMPTS.values()]
    assert cache.blocks_nbytes == sum(blocks) * cache.store.block_nbytes
    assert cache.reserved_nbytes == 16 * cache.store.block_nbytes
    cache.fork("eve", "twin")
    assert cache.nbytes == kv_bytes(num_layers=3, **sizes, seq_len=held)  # shared ones count once
    for name in list(cache.tokens):
        cache.free(name)
    assert (cache.nbytes, cache.blocks_nbytes) == (0, 0)


def test_a_step_that_fails_leaves_the_cache_as_it_was(
    llama: Llama, paged: Callable[..., PagedCache]
) -> None:
    cache = paged(num_blocks=8)
    logits = step_paged(llama, cache, {"a": list(range(1, 7)), "b": [7, 8, 9]})
    cache.fork("a", "c")
    table, used = cache.manager.block_table("b"), cache.manager.num_used
    with pytest.raises(OutOfBlocks, match="seq_id='d'"):
        step_paged(llama, cache, {"a": [1], "b": [1, 2], "d": [1] * 20})
    with pytest.raises(KeyboardInterrupt), cache.step({"a": [1], "b": [1, 2], "d": [1]}) as batch:
        llama(batch.input_ids, cache=batch, attention_mask=batch.attention_mask)
        raise KeyboardInterrupt
    with pytest.raises(InvalidArgument, match="token ids run from 0 to 60"):
        step_paged(llama, cache, {"a": [61]})
    assert list(cache.tokens) == list(cache.manager.tables) == ["a", "b", "c"]
    assert (cache.manager.block_table("b"), cache.manager.num_tokens("b")) == (table, 3)
    assert cache.manager.num_used <= used + 1  # the fork's tail may be its own by now
    for new in ({"b": [5], "c": [5]}, {"a": [5]}):
        assert_same(llama, cache, step_paged(llama, cache, new))
    assert len(logits) == 2


BAD_STEPS: list[tuple[str, dict[str, list[int]]]] = [
    ("new_tokens", {"a": []}),
    ("spans", {}),
    ("input_ids", {"a": [-1]}),
]


@pytest.mark.parametrize(("argument", "new_tokens"), BAD_STEPS)
def test_bad_steps_are_named(
    llama: Llama, paged: Callable[..., PagedCache], argument: str, new_tokens: dict[str, list[int]]
) -> None:
    cache = paged()
    with pytest.raises(InvalidArgument, match=argument):
        step_paged(llama, cache, new_tokens)
    assert cache.manager.num_free == 64


def test_store_and_block_manager_must_be_of_one_size(paged: Callable[..., PagedCache]) -> None:
    with pytest.raises(InvalidArgument, match="num_blocks, block_size"):
        PagedCache(paged(block_size=4).store, BlockManager(64, 8))

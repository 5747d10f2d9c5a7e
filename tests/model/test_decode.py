"""Prefill, decode and generate: equal to the uncached run, exact counts, safe to interrupt."""

import itertools
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.cache import make_cache, transformers_cache
from kvlab.errors import CacheFull, CacheInUse, InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.decode import Step, continue_from, decode_one_token, generate, prefill
from kvlab.model.llama import Llama

NAMES = ("none", "growing", "preallocated")
HELD = ("growing", "preallocated")
STOCK = ("dynamic", "static")
PROMPT = [3, 1, 4, 1, 5, 9]


def tiny_llama(num_layers: int = 3) -> Llama:
    config = LlamaConfig(
        num_layers=num_layers,
        num_heads=4,
        num_kv_heads=2,
        head_dim=8,
        hidden_size=32,
        intermediate_size=48,
        vocab_size=61,
        max_seq_len=64,
    )
    return Llama(config).init_weights(seed=1, std=0.3).eval()


@pytest.fixture(scope="module")
def model() -> Llama:
    return tiny_llama()


def some_cache(name: str, capacity: int = 40) -> object:
    if name in STOCK:
        return transformers_cache(name, num_layers=3, capacity=capacity)
    return make_cache(name, num_layers=3, capacity=capacity)


def tokens(steps: Iterator[Step]) -> list[int]:
    return [step.token_id for step in steps]


def reference(model: Llama, ids: list[int] | Tensor, new: int) -> list[int]:
    """Greedy by hand: the whole text again for every token, no cache, no loop of ours."""
    text = torch.as_tensor(ids).reshape(1, -1)
    for _ in range(new):
        text = torch.cat([text, model(text)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return text[0, -new:].tolist()


def logits_of(model: Llama, ids: list[int]) -> Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids]))[:, -1:]


# -- counts --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HELD + STOCK)
def test_ten_tokens_after_six_leave_fifteen_in_the_cache(model: Llama, name: str) -> None:
    cache = some_cache(name)
    steps = list(generate(model, PROMPT, max_new_tokens=10, cache=cache))
    assert len(steps) == 10
    assert [step.phase for step in steps] == ["prefill"] + ["decode"] * 9
    assert int(cache.get_seq_length()) == 15
    assert [step.token_forwards for step in steps] == [6] + [1] * 9
    assert steps[-1].total_token_forwards == token_forwards_cached(6, 10) == 15


def test_without_a_cache_every_step_runs_the_whole_text_again(model: Llama) -> None:
    steps = list(generate(model, PROMPT, max_new_tokens=10, cache="none"))
    assert [step.token_forwards for step in steps] == list(range(6, 16))
    assert steps[-1].total_token_forwards == token_forwards_uncached(6, 10)
    assert {step.cache_bytes for step in steps} == {0}


@pytest.mark.parametrize("name", HELD + STOCK)
def test_bytes_held_follow_the_formula_at_every_step(model: Llama, name: str) -> None:
    per_token = 2 * 3 * 2 * 8 * 4  # K and V x layers x KV heads x head_dim x float32
    steps = list(generate(model, PROMPT, max_new_tokens=5, cache=some_cache(name)))
    assert [step.cache_bytes for step in steps] == [per_token * n for n in range(6, 11)]
    reserves_all = name in ("preallocated", "static")
    expected = per_token * 40 if reserves_all else per_token * 10
    assert steps[-1].cache_reserved_bytes == expected


def test_a_named_preallocated_cache_has_exactly_the_room_it_needs(model: Llama) -> None:
    last = list(generate(model, PROMPT, max_new_tokens=5, cache="preallocated"))[-1]
    assert last.cache_bytes == last.cache_reserved_bytes == 10 * 2 * 3 * 2 * 8 * 4


# -- equality ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ("none", *HELD, *STOCK))
def test_every_cache_writes_the_same_text(model: Llama, name: str) -> None:
    cache = some_cache(name)
    assert tokens(generate(model, PROMPT, max_new_tokens=12, cache=cache)) == reference(
        model, PROMPT, 12
    )


@settings(max_examples=40, deadline=None)
@given(
    ids=st.lists(st.integers(0, 60), min_size=1, max_size=12),
    new=st.integers(1, 6),
    chunk=st.none() | st.integers(1, 12),
    name=st.sampled_from(HELD),
)
def test_any_prompt_in_any_chunks_gives_the_uncached_logits(
    ids: list[int], new: int, chunk: int | None, name: str
) -> None:
    model = tiny_llama(num_layers=1)
    options = {"max_new_tokens": new, "keep_logits": True}
    cached = list(generate(model, ids, cache=name, chunk_size=chunk, **options))
    again = list(generate(model, ids, cache="none", **options))
    for one, other in zip(cached, again, strict=True):
        torch.testing.assert_close(one.logits, other.logits, atol=1e-4, rtol=0)


def test_every_way_to_cut_seven_tokens_gives_the_logits_of_one_piece(model: Llama) -> None:
    ids = [*PROMPT, 2]
    whole = prefill(model, ids, last_token_only=False)
    for size, name in itertools.product(range(1, 8), HELD):
        cache = some_cache(name)
        pieces = prefill(model, ids, cache, chunk_size=size, last_token_only=False)
        torch.testing.assert_close(pieces, whole, atol=1e-4, rtol=0)
        assert cache.get_seq_length() == 7


def test_a_chunked_prompt_returns_the_logits_of_the_last_token_alone(model: Llama) -> None:
    logits = prefill(model, PROMPT, some_cache("growing"), chunk_size=4)
    assert logits.shape == (1, 1, 61)
    torch.testing.assert_close(logits, logits_of(model, PROMPT), atol=1e-4, rtol=0)


def test_step_by_step_differs_from_one_shot_by_rounding_that_grows_in_16_bit() -> None:
    ids = torch.randint(0, 61, (1, 24), generator=torch.Generator().manual_seed(0))
    limits = {torch.float32: 1e-4, torch.bfloat16: 0.02, torch.float16: 0.02}
    for dtype, limit in limits.items():
        model = tiny_llama(num_layers=2).to(dtype)
        whole = prefill(model, ids, last_token_only=False).float()
        cache = make_cache("growing", num_layers=2)
        steps = [decode_one_token(model, ids[:, [i]], cache).float() for i in range(24)]
        difference = (torch.cat(steps, dim=1) - whole).abs().max()
        assert difference <= limit * (1 if dtype == torch.float32 else whole.abs().max())


# -- batches -------------------------------------------------------------------------------


def padded() -> tuple[Tensor, Tensor]:
    rows = torch.tensor([[*PROMPT, 2], [0, 0, 0, 0, 7, 8, 2]])
    return rows, torch.tensor([[1] * 7, [0] * 4 + [1] * 3])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunk", [None, 3])
def test_each_row_of_a_left_padded_batch_writes_what_it_writes_alone(
    model: Llama, name: str, chunk: int | None
) -> None:
    if name == "none" and chunk:
        pytest.skip("a prompt in chunks needs a cache")
    ids, mask = padded()
    options = {"max_new_tokens": 6, "cache": name, "chunk_size": chunk}
    steps = list(generate(model, ids, attention_mask=mask, **options))
    columns = list(zip(*(step.token_ids for step in steps), strict=True))
    assert list(columns[0]) == reference(model, ids[0], 6)
    assert list(columns[1]) == reference(model, ids[1, 4:], 6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stopping_row", [0, 1])
def test_a_row_that_stopped_gains_no_token_and_disturbs_no_other(
    model: Llama, name: str, stopping_row: int
) -> None:
    ids, mask = padded()
    alone = [reference(model, ids[0], 8), reference(model, ids[1, 4:], 8)]
    other = alone[1 - stopping_row]
    stop = next(t for t in alone[stopping_row] if t not in other)
    length = alone[stopping_row].index(stop) + 1
    chunk = None if name == "none" else 3
    steps = list(
        generate(
            model,
            ids,
            attention_mask=mask,
            max_new_tokens=8,
            cache=name,
            chunk_size=chunk,
            stop_ids=[stop],
        )
    )
    rows = list(zip(*(step.token_ids for step in steps), strict=True))
    assert list(rows[1 - stopping_row]) == other
    assert list(rows[stopping_row]) == alone[stopping_row][:length] + [None] * (8 - length)


def test_generation_ends_with_the_stop_token(model: Llama) -> None:
    text = reference(model, PROMPT, 10)
    stop = text[4]
    found = tokens(generate(model, PROMPT, max_new_tokens=10, stop_ids=[stop]))
    assert found == text[: text.index(stop) + 1]


def test_a_step_of_two_rows_has_no_single_token(model: Llama) -> None:
    step = next(generate(model, torch.tensor([PROMPT, PROMPT]), max_new_tokens=1))
    assert step.token_ids[0] == step.token_ids[1]
    with pytest.raises(InvalidArgument, match="batch of one row"):
        _ = step.token_id


# -- one cache, several uses ------------------------------------------------------------------


# transformers 5.15's DynamicCache keeps its length through its own reset, so it stays refused there
@pytest.mark.parametrize("name", [*HELD, "static"])
def test_a_used_cache_is_refused_until_it_is_reset(model: Llama, name: str) -> None:
    cache = some_cache(name)
    list(generate(model, PROMPT, max_new_tokens=4, cache=cache))
    with pytest.raises(CacheInUse, match="holds 9 tokens"):
        generate(model, [7, 7, 2], max_new_tokens=4, cache=cache)
    uncached = tokens(generate(model, [7, 7, 2], max_new_tokens=4, cache=None))
    cache.reset()
    again = list(generate(model, [7, 7, 2], max_new_tokens=4, cache=cache, keep_logits=True))
    fresh = generate(model, [7, 7, 2], max_new_tokens=4, cache=some_cache(name), keep_logits=True)
    assert [step.token_id for step in again] == uncached
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(again, fresh, strict=True))


@pytest.mark.parametrize("name", HELD)
def test_after_dropping_four_tokens_four_others_continue_as_if_nothing_had_been(
    model: Llama, name: str
) -> None:
    ten, four = [*PROMPT, 2, 6, 5, 3], [11, 12, 13, 14]
    cache = some_cache(name)
    prefill(model, ten, cache)
    cache.drop_last(4)
    logits = continue_from(model, cache, new_ids=torch.tensor([four]))
    torch.testing.assert_close(logits, logits_of(model, ten[:6] + four), atol=1e-4, rtol=0)
    assert cache.get_seq_length() == 10


@pytest.mark.parametrize("name", HELD + STOCK)
def test_new_ids_and_full_ids_continue_alike(model: Llama, name: str) -> None:
    new = [8, 9, 10]
    one, two = some_cache(name), some_cache(name)
    prefill(model, PROMPT, one)
    prefill(model, PROMPT, two)
    told_new = continue_from(model, one, new_ids=torch.tensor([new]))
    told_all = continue_from(model, two, full_ids=torch.tensor([PROMPT + new]))
    assert torch.equal(told_new, told_all)
    torch.testing.assert_close(told_new, logits_of(model, PROMPT + new), atol=1e-4, rtol=0)


def test_a_history_shorter_than_the_cache_is_refused_with_both_lengths(model: Llama) -> None:
    cache = some_cache("growing")
    prefill(model, PROMPT, cache)
    with pytest.raises(InvalidArgument, match=r"4 tokens.*longer than the 6 tokens"):
        continue_from(model, cache, full_ids=torch.tensor([PROMPT[:4]]))
    assert cache.get_seq_length() == 6


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("how", ["new_ids", "full_ids"])
def test_generation_goes_on_where_it_ended(model: Llama, name: str, how: str) -> None:
    cache = some_cache(name)
    first = tokens(generate(model, PROMPT, max_new_tokens=4, cache=cache))
    ids = [first[-1]] if how == "new_ids" else PROMPT + first
    rest = tokens(generate(model, ids, max_new_tokens=5, cache=cache, continuing=how))
    assert first + rest == reference(model, PROMPT, 9)


def test_an_uncached_run_is_not_touched_by_a_cached_one_before_it(model: Llama) -> None:
    before = prefill(model, PROMPT)
    list(generate(model, PROMPT, max_new_tokens=4, cache="preallocated"))
    assert torch.equal(prefill(model, PROMPT), before)


def test_a_cache_can_be_written_to_outside_the_loop(model: Llama) -> None:
    cache = some_cache("preallocated")
    first = tokens(generate(model, PROMPT, max_new_tokens=1, cache=cache))
    model(torch.tensor([first]), cache=cache).sum().backward()  # gradients on, cache written
    assert cache.get_seq_length() == 7
    model.zero_grad()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_writes_what_the_cpu_writes(name: str) -> None:
    ids, mask = padded()
    options = {"max_new_tokens": 8, "cache": name, "attention_mask": mask}
    runs = [
        [step.token_ids for step in generate(tiny_llama().to(device), ids, **options)]
        for device in ("cpu", "cuda")
    ]
    assert runs[0] == runs[1]


# -- interrupts ----------------------------------------------------------------------------


class Interrupt:
    """A hook that raises KeyboardInterrupt at the `n`-th call of one layer."""

    def __init__(self, model: Llama, layer_idx: int, call: int) -> None:
        self.left = call
        self.handle = model.model.layers[layer_idx].self_attn.o_proj.register_forward_hook(self)

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", HELD + STOCK)
@pytest.mark.parametrize("layer_idx", [0, 1, 2])
def test_an_interrupt_inside_a_layer_leaves_every_layer_equally_long(
    model: Llama, name: str, layer_idx: int
) -> None:
    cache, seen = some_cache(name), []
    interrupt = Interrupt(model, layer_idx, call=3)  # the prefill, one decode step, then half one
    with pytest.raises(KeyboardInterrupt):
        seen.extend(
            step.token_id for step in generate(model, PROMPT, max_new_tokens=8, cache=cache)
        )
    interrupt.handle.remove()
    assert {int(layer.get_seq_length()) for layer in cache.layers} == {7}
    retry = generate(model, seen[-1:], max_new_tokens=6, cache=cache, continuing="new_ids")
    assert seen + tokens(retry) == reference(model, PROMPT, 8)


@pytest.mark.parametrize("name", HELD)
def test_an_interrupted_chunked_prompt_leaves_the_cache_as_it_was(model: Llama, name: str) -> None:
    cache = some_cache(name)
    interrupt = Interrupt(model, 1, call=2)
    with pytest.raises(KeyboardInterrupt):
        prefill(model, PROMPT, cache, chunk_size=2)
    interrupt.handle.remove()
    assert {layer.get_seq_length() for layer in cache.layers} == {0}
    torch.testing.assert_close(prefill(model, PROMPT, cache), logits_of(model, PROMPT))


def test_a_closed_generator_leaves_whole_steps_in_the_cache(model: Llama) -> None:
    cache = some_cache("growing")
    running = generate(model, PROMPT, max_new_tokens=8, cache=cache)
    seen = [next(running).token_id for _ in range(3)]
    running.close()
    assert {layer.get_seq_length() for layer in cache.layers} == {8}
    rest = generate(model, seen[-1:], max_new_tokens=5, cache=cache, continuing="new_ids")
    assert seen + tokens(rest) == reference(model, PROMPT, 8)


def test_the_consumer_keeps_its_gradient_mode_between_steps(model: Llama) -> None:
    for _ in generate(model, PROMPT, max_new_tokens=2):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


# -- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"input_ids": []}, "prompt is empty"),
        ({"input_ids": torch.zeros(1, 0, dtype=torch.long)}, "prompt is empty"),
        ({"input_ids": "text"}, "token ids"),
        ({"input_ids": [1.5]}, "whole numbers"),
        ({"input_ids": [1] * 62}, r"62 prompt \+ 4 new - 1 = 65 positions.*64 positions"),
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
        ({"max_new_tokens": -3}, "max_new_tokens=-3"),
        ({"max_new_tokens": 2.5}, "max_new_tokens=2.5"),
        ({"temperature": -0.1}, "temperature=-0.1"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"top_p": 0}, "top_p=0"),
        ({"top_p": 1.1}, "top_p=1.1"),
        ({"top_k": 0}, "top_k=0"),
        ({"seed": -1}, "seed=-1"),
        ({"cache": "grown"}, "cache='grown'"),
        ({"chunk_size": 0}, "chunk_size=0"),
        ({"cache": None, "chunk_size": 2}, "chunk_size=2"),
        ({"stop_ids": [61]}, "stop_ids=61"),
        ({"stop_ids": 5}, "stop_ids=5"),
        ({"continuing": "yes"}, "continuing='yes'"),
        ({"attention_mask": torch.ones(1, 5)}, "attention_mask"),
        ({"attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0]])}, "pad on the left"),
    ],
)
def test_wrong_input_is_named_in_one_line_before_the_first_step(
    model: Llama, wrong: dict[str, object], message: str
) -> None:
    arguments: dict[str, object] = {"input_ids": PROMPT, "max_new_tokens": 4} | wrong
    with pytest.raises(InvalidArgument, match=message) as caught:
        generate(model, arguments.pop("input_ids"), **arguments)
    assert "\n" not in str(caught.value)


def test_a_cache_object_that_is_too_small_is_refused_before_the_first_step(model: Llama) -> None:
    cache = some_cache("preallocated", capacity=8)
    with pytest.raises(CacheFull, match="8 tokens is too small: this run needs 9"):
        generate(model, PROMPT, max_new_tokens=4, cache=cache)
    assert len(list(generate(model, PROMPT, max_new_tokens=3, cache=cache))) == 3


def test_the_last_position_of_the_model_can_be_used(model: Llama) -> None:
    assert len(list(generate(model, [1] * 60, max_new_tokens=5))) == 5


def test_decode_takes_one_token_a_row(model: Llama) -> None:
    with pytest.raises(InvalidArgument, match="one token a row"):
        decode_one_token(model, [1, 2], some_cache("growing"))

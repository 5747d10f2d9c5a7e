"""`KVCache`: shorten, reset, clone and reorder all layers, and what each does to the answer."""

import copy
from typing import Any

import pytest
import torch

from kvlab.cache import make_cache
from kvlab.cache.contiguous import ContiguousLayer
from kvlab.errors import InvalidArgument

NAMES = pytest.mark.parametrize("name", ["growing", "preallocated"])


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


def contents(cache: Any) -> list[torch.Tensor]:
    return [tensor.clone() for layer in cache.layers for tensor in layer.held()]


@NAMES
def test_after_reset_a_cache_is_bit_equal_to_a_new_one(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, fresh, question = new_cache(name), new_cache(name), ids(1, 6, seed=2)
    llama(ids(2, 9), cache=cache)  # another batch size, too
    cache.reset()
    assert (cache.get_seq_length(), cache.nbytes, cache.reserved_nbytes) == (0, 0, 0)
    assert torch.equal(llama(question, cache=cache), llama(question, cache=fresh))
    assert torch.equal(llama(question), llama(question))  # uncached, after cached calls


@NAMES
def test_two_questions_through_clones_leave_the_prompt_cache_as_it_was(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    prompt, cache = ids(1, 5), new_cache(name)
    llama(prompt, cache=cache)
    before = contents(cache)
    for seed in (2, 3):
        question = ids(1, 3, seed=seed)
        answer = llama(question, cache=cache.clone())
        close(answer, llama(torch.cat([prompt, question], dim=1))[:, 5:])
    assert cache.get_seq_length() == 5
    assert all(map(torch.equal, contents(cache), before))


@NAMES
def test_a_clone_shares_no_memory(name: str, llama: Any, new_cache: Any, ids: Any) -> None:
    cache = new_cache(name)
    llama(ids(1, 5), cache=cache)
    for twin in (cache.clone(), copy.deepcopy(cache)):
        assert (twin.nbytes, twin.reserved_nbytes) == (cache.nbytes, cache.reserved_nbytes)
        for layer, other in zip(cache.layers, twin.layers, strict=True):
            assert layer.keys.data_ptr() != other.keys.data_ptr()
            assert layer.values.data_ptr() != other.values.data_ptr()


@NAMES
@pytest.mark.parametrize("keep", [0, 1, 2, 3])
def test_truncate_to_n_keeps_n(name: str, keep: int, llama: Any, new_cache: Any, ids: Any) -> None:
    cache, dropped = new_cache(name), new_cache(name)
    for each in (cache, dropped):
        llama(ids(1, 3), cache=each)
    cache.truncate_to(keep)
    dropped.drop_last(3 - keep)
    lengths = [layer.get_seq_length() for each in (cache, dropped) for layer in each.layers]
    assert lengths == [keep] * 6
    assert cache.nbytes == dropped.nbytes == keep * 3 * 2 * 2 * 8 * 4


@NAMES
@pytest.mark.parametrize("n", [-1, 4])
def test_truncating_and_dropping_outside_of_the_cache_are_refused(
    name: str, n: int, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache(name)
    llama(ids(1, 3), cache=cache)
    for change in (cache.truncate_to, cache.drop_last, cache.layers[0].truncate_to):
        with pytest.raises(InvalidArgument, match=f"n={n}: must be from 0 to 3, the tokens in"):
            change(n)
    for odd in (None, "1", 0.5, [1], True):
        with pytest.raises(InvalidArgument, match=r"tokens_to_remove=.*: must be 0 or below"):
            cache.crop(odd)
    with pytest.raises(InvalidArgument, match="must be 0 or below"):
        cache.crop(1)
    assert cache.get_seq_length() == 3


@NAMES
def test_tokens_dropped_are_forgotten_and_others_may_follow(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt, others = new_cache(name, capacity=10), ids(1, 10), ids(1, 4, seed=9)
    llama(prompt, cache=cache)
    cache.drop_last(4)
    kept = torch.cat([prompt[:, :6], others], dim=1)
    close(llama(others, cache=cache), llama(kept)[:, 6:])


@NAMES
def test_a_length_told_as_a_tensor_is_not_shared_between_layers(
    name: str, llama: Any, new_cache: Any, ids: Any
) -> None:
    for shorten in (
        lambda cache: cache.crop(torch.tensor(-2)),
        lambda cache: cache.truncate_to(torch.tensor(3)),
    ):
        cache, prompt = new_cache(name), ids(1, 5)
        llama(prompt, cache=cache)
        shorten(cache)
        llama(prompt[:, 3:], cache=cache)
        assert [layer.get_seq_length() for layer in cache.layers] == [5, 5, 5]


def swapped_decode(llama: Any, cache: Any, prompts: Any, token: Any) -> torch.Tensor:
    llama(prompts, cache=cache)
    cache.reorder_cache(torch.tensor([1, 0]))
    return llama(token, cache=cache)


@NAMES
def test_reordering_gives_the_logits_of_a_batch_in_the_other_order(
    name: str, llama: Any, new_cache: Any, ids: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, token = ids(2, 5), ids(2, 1, seed=4)
    expected = llama(torch.cat([prompts.flip(0), token], dim=1))[:, -1:]
    close(swapped_decode(llama, new_cache(name), prompts, token), expected)

    def only_keys(layer: Any, rows: torch.Tensor) -> None:
        layer.keys = layer.keys[rows]

    monkeypatch.setattr(ContiguousLayer, "take_rows", only_keys)  # this check can fail
    with pytest.raises(AssertionError):
        close(swapped_decode(llama, new_cache(name), prompts, token), expected)


@NAMES
def test_rows_can_be_repeated_and_selected(name: str, llama: Any, new_cache: Any, ids: Any) -> None:
    prompts, token, cache = ids(2, 5), ids(4, 1, seed=4), new_cache(name)
    llama(prompts, cache=cache)
    cache.batch_repeat_interleave(2)
    repeated = torch.cat([prompts.repeat_interleave(2, dim=0), token], dim=1)
    close(llama(token, cache=cache), llama(repeated)[:, -1:])
    cache.batch_select_indices(torch.tensor([3, 0]))
    cache.select_rows(torch.tensor([1]))
    close(llama(token[:1], cache=cache), llama(torch.cat([repeated[:1], token[:1]], 1))[:, -1:])
    assert cache.batch_size == 1 and cache.nbytes == 7 * 3 * 2 * 2 * 8 * 4


@NAMES
@pytest.mark.parametrize("rows", [[2], [-1], []])
def test_rows_that_do_not_exist_are_refused(
    name: str, rows: list[int], llama: Any, new_cache: Any, ids: Any
) -> None:
    cache = new_cache(name)
    llama(ids(2, 3), cache=cache)
    with pytest.raises(InvalidArgument, match="must name rows from 0 to 1"):
        cache.select_rows(torch.tensor(rows, dtype=torch.long))


@NAMES
def test_an_empty_cache_can_be_reset_cloned_shortened_and_reordered(
    name: str, new_cache: Any
) -> None:
    cache = new_cache(name).clone()
    cache.reset()
    cache.truncate_to(0)
    cache.drop_last(0)
    cache.reorder_cache(torch.tensor([1, 0]))
    cache.batch_repeat_interleave(3)
    assert cache.get_seq_length() == cache.nbytes == 0


@pytest.mark.parametrize(
    "rows", [[0], (0,), 0, None, "0", torch.tensor(0), torch.tensor([0.0]), torch.tensor([True])]
)
def test_rows_that_are_no_tensor_of_row_numbers_are_refused(rows: Any) -> None:
    token = torch.zeros(2, 1, 1, 4)
    for name in ("growing", "int8"):
        cache = make_cache(name, num_layers=1)
        changes = {
            "beam_idx": cache.reorder_cache,
            "indices": cache.batch_select_indices,
        }
        for argument, change in changes.items():
            with pytest.raises(
                InvalidArgument, match=f"{argument}=.*must be a tensor of row numbers"
            ):
                change(rows)  # an empty cache refuses, too
        cache.update(token, token, 0)
        for change in (*changes.values(), cache.select_rows, cache.layers[0].select_rows):
            with pytest.raises(InvalidArgument, match="must be a tensor of row numbers"):
                change(rows)
    for repeats in (0, 1.5, "2", None):
        with pytest.raises(InvalidArgument, match="repeats="):
            cache.batch_repeat_interleave(repeats)
    cache.reorder_cache(torch.tensor([1, 0], dtype=torch.int32))
    cache.batch_repeat_interleave(2)
    assert cache.layers[0].batch_size == 4

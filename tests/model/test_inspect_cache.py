"""Caches of two runs are compared where they are, and an edit is seen from layer 2 on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kvlab.errors import InvalidArgument
from kvlab.model.inspect_cache import (
    SAME,
    CacheDifference,
    compare_caches,
    finish_with,
    read_into_cache,
    token_names,
    twin_texts,
    with_rows_of,
)
from kvlab.model.llama_mistakes import LLAMA_MISTAKES
from kvlab.model.retrieval_tokenizer import build_tokenizer

EDIT = 2


@dataclass
class Loaded:
    """A random Llama under the tiny model's name and tokenizer, as `load_model` returns one."""

    model: Any
    name: str = "tiny"

    def encode(self, text: str) -> Tensor:
        return torch.tensor([build_tokenizer().encode(text).ids])

    def decode(self, ids: Any, *, skip_special: bool = True) -> str:
        return build_tokenizer().decode([int(i) for i in ids], skip_special_tokens=skip_special)


@pytest.fixture
def loaded(make_llama: Any) -> Loaded:
    return Loaded(make_llama(num_hidden_layers=4, vocab_size=256))


@pytest.fixture
def ids() -> Tensor:
    return torch.tensor([[5, 6, 7, 8, 9, 10]])


@pytest.fixture
def edited(ids: Tensor) -> Tensor:
    changed = ids.clone()
    changed[0, EDIT] = 30
    return changed


def difference(loaded: Loaded, one: Tensor, other: Tensor) -> CacheDifference:
    return compare_caches(read_into_cache(loaded, one)[0], read_into_cache(loaded, other)[0])


def test_positions_before_an_edit_are_the_same_in_every_layer(loaded, ids, edited) -> None:
    apart = difference(loaded, ids, edited)
    assert apart.keys[:, :EDIT].max() == apart.values[:, :EDIT].max() == 0


@pytest.mark.parametrize("part", ["keys", "values"])
def test_an_edit_is_seen_at_once_in_its_place_and_one_layer_later_behind_it(
    loaded, ids, edited, part
) -> None:
    apart = difference(loaded, ids, edited)
    first = [apart.first_layer(position, part) for position in range(6)]
    assert first == [None, None, 1, 2, 2, 2]
    assert getattr(apart, part)[1:, EDIT:].min() > 100 * SAME


def test_a_difference_is_a_share_of_the_vectors_length(loaded, ids) -> None:
    cache, _ = read_into_cache(loaded, ids)
    twice = cache.clone()
    for layer in twice.layers:
        layer.keys.mul_(2)
    apart = compare_caches(cache, twice)
    assert np.allclose(apart.keys, 1) and apart.values.max() == 0
    assert apart.largest == pytest.approx(1)


def test_only_the_positions_asked_for_are_compared(loaded, ids, edited) -> None:
    one, other = (read_into_cache(loaded, each)[0] for each in (ids, edited))
    assert compare_caches(one, other, positions=[0, 1]).largest == 0
    assert compare_caches(one, other, positions=slice(EDIT, None)).keys.shape == (4, 4)


def test_caches_of_other_lengths_are_refused(loaded, ids) -> None:
    one, other = (read_into_cache(loaded, each)[0] for each in (ids, ids[:, :4]))
    with pytest.raises(InvalidArgument, match="its shape must be"):
        compare_caches(one, other)
    with pytest.raises(InvalidArgument, match="part='queries'"):
        compare_caches(one, one).first_layer(0, "queries")


def test_rows_are_swapped_in_a_copy(loaded, ids, edited) -> None:
    one, other = (read_into_cache(loaded, each)[0] for each in (ids, edited))
    mixed = with_rows_of(one, other, [EDIT])
    assert compare_caches(mixed, other, positions=[EDIT]).largest == 0
    assert compare_caches(mixed, one, positions=[0, 1, 3, 4, 5]).largest == 0
    assert compare_caches(one, read_into_cache(loaded, ids)[0]).largest == 0


def test_own_rows_give_the_own_logits_and_borrowed_ones_do_not(loaded, ids, edited) -> None:
    (one, _), (other, logits) = (read_into_cache(loaded, each) for each in (ids, edited))
    own = finish_with(loaded, one, other, range(6), edited)
    assert (own - logits).abs().max() < 1e-4
    for rows in ([], [EDIT]):
        borrowed = finish_with(loaded, one, other, rows, edited)
        assert (borrowed - logits).abs().max() > 1e-2
    assert one.get_seq_length() == other.get_seq_length() == 6


def test_twin_texts_differ_in_one_early_token(loaded) -> None:
    one, other = (loaded.encode(text) for text in twin_texts(loaded))
    assert one.shape == other.shape == (1, 8)
    assert (one != other)[0].nonzero().flatten().tolist() == [2]
    assert token_names(loaded, twin_texts(loaded)[0])[2] == "ana"


def test_on_the_bundled_model_borrowed_rows_change_the_logits(loaded) -> None:
    one, other = (loaded.encode(text) for text in twin_texts(loaded))
    (ours, _), (theirs, logits) = (read_into_cache(loaded, ids) for ids in (one, other))
    off = [
        float((finish_with(loaded, ours, theirs, own, other) - logits).abs().max())
        for own in ([], [2], range(8))
    ]
    assert off[2] < 1e-3 < min(off[:2])


@pytest.mark.parametrize("make", LLAMA_MISTAKES, ids=lambda make: make.__name__)
def test_each_mistake_breaks_where_it_must(loaded, make) -> None:
    parts = {
        "wrong_offset": (None, None, 1, 2),
        "square_mask": (None, None, 2, 2),
        "left_padding": (1, None, 2, 2),
    }
    made = make(loaded, twin_texts(loaded)[0])
    assert tuple(made.breaks.values()) == parts[make.__name__]
    assert made.logit_difference > 1e-2


@pytest.mark.parametrize("pad", [1, 4])
def test_the_right_run_of_a_padded_row_is_that_of_the_row_alone(loaded, pad) -> None:
    from kvlab.model.llama_mistakes import _consume, left_padding

    text = twin_texts(loaded)[0]
    alone = _consume(loaded, loaded.encode(text))[1]
    assert left_padding(loaded, text, pad=pad).right_token == loaded.decode([int(alone.argmax())])

"""A padded row gets the logits it gets alone, at prefill and at every decode step."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from feeding import feed
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from kvlab.errors import Unsupported
from kvlab.model.llama import Llama
from kvlab.model.masks import row_positions, visible_keys

MakePair = Callable[..., Any]
NewCache = Callable[..., Any]
MakeLlama = Callable[..., Llama]
CACHES = ("dynamic", "static")
VOCAB_SIZE = 61


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    """Keep no graph."""
    with torch.no_grad():
        yield


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


def left_padded(prompt: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """Return the prompt with row 1 cut to its last tokens, and the mask that says so."""
    mask = torch.ones_like(prompt)
    mask[1, :pad] = 0
    return prompt * mask, mask


@pytest.mark.parametrize("name", CACHES)
@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_a_left_padded_row_decodes_as_it_does_alone(
    make_llama: MakeLlama, new_cache: NewCache, prompt: Tensor, name: str, chunk: int
) -> None:
    model, cache = make_llama(), new_cache(name)
    input_ids, mask = left_padded(prompt, pad=4)
    new = torch.randint(0, VOCAB_SIZE, (2, 5))
    tokens, mask = torch.cat((input_ids, new), 1), torch.cat((mask, torch.ones_like(new)), 1)
    chunks = [*input_ids.split(chunk, dim=1), *new.split(1, dim=1)]
    logits = feed(model, chunks, cache, mask)
    assert torch.isfinite(logits).all()
    assert_close(logits[0], model(tokens[:1])[0])
    assert_close(logits[1, 4:], model(tokens[1:, 4:])[0])


def test_left_padding_equals_transformers_with_positions(
    make_pair: MakePair, prompt: Tensor
) -> None:
    pair = make_pair()
    input_ids, mask = left_padded(prompt, pad=4)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    expected = pair.reference(input_ids, attention_mask=mask, position_ids=positions)
    real = mask.bool()
    assert_close(pair.ours(input_ids, attention_mask=mask)[real], expected[real])


def test_decoding_with_positions_shared_by_all_rows_is_wrong(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    model, cache = make_llama(), DynamicCache()
    input_ids, mask = left_padded(prompt, pad=4)
    model(input_ids, cache=cache, attention_mask=mask)
    shared = torch.tensor([[7], [7]])
    mask = torch.cat((mask, torch.ones(2, 1, dtype=mask.dtype)), 1)
    new = torch.tensor([[5], [6]])
    logits = model(new, cache=cache, attention_mask=mask, position_ids=shared)
    alone = model(torch.cat((prompt[1:, 4:], new[1:]), 1))
    assert (logits[1, -1] - alone[0, -1]).abs().max() > 1e-2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("watched", [False, True])
def test_padding_rows_are_finite_in_every_dtype(
    make_llama: MakeLlama, prompt: Tensor, dtype: torch.dtype, watched: bool
) -> None:
    model = make_llama().to(dtype)
    input_ids, mask = left_padded(prompt, pad=4)
    cache = DynamicCache()
    if watched:
        cache.wants_weights, cache.observe = True, lambda weights, layer_idx: None
    assert torch.isfinite(model(input_ids, cache=cache, attention_mask=mask)).all()


def test_right_padding_decodes_as_each_row_does_alone(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    model, cache = make_llama(), DynamicCache()
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[1, 3:7] = 0
    new = torch.tensor([[5], [6]])
    logits = feed(model, [prompt, new], cache, mask)
    assert_close(logits[1, -1], model(torch.cat((prompt[1:, :3], new[1:]), 1))[0, -1])


def test_padding_with_a_cache_that_has_dropped_tokens_is_refused(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    model, cache = make_llama(), DynamicCache()
    cache.layers = [DynamicLayer(), DynamicSlidingWindowLayer(sliding_window=4)]
    input_ids, mask = left_padded(prompt, pad=2)
    model(input_ids, cache=cache, attention_mask=mask)
    longer = torch.cat((mask, torch.ones(2, 1, dtype=mask.dtype)), 1)
    with pytest.raises(Unsupported, match="padded batch"):
        model(torch.tensor([[1], [2]]), cache=cache, attention_mask=longer)
    assert [layer.get_seq_length() for layer in cache.layers] == [7, 7]


def test_positions_of_a_short_row_count_its_own_tokens() -> None:
    mask = torch.tensor([[1] * 8, [0] * 4 + [1] * 4])
    prefill = row_positions(torch.zeros(2, 7), 0, mask[:, :7])
    decode = row_positions(torch.zeros(2, 1), 7, mask)
    assert prefill[1].tolist() == [0, 0, 0, 0, 0, 1, 2]
    assert decode.tolist() == [[7], [3]]


def test_no_row_of_a_mask_is_empty_and_no_token_sees_padding() -> None:
    mask = torch.tensor([[1] * 7, [0] * 4 + [1] * 3])
    visible = visible_keys(torch.zeros(2, 7), 0, 7, 0, mask)
    assert visible.any(-1).all()
    assert not visible[1, 0, 4:, :4].any()
    assert torch.equal(visible[0, 0], torch.ones(7, 7, dtype=torch.bool).tril())

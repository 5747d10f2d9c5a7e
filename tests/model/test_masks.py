"""Attention in the open equals the fused one, and wrong inputs are refused by name."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.cache_utils import DynamicCache

from kvlab.errors import InvalidArgument
from kvlab.model.llama import Llama
from kvlab.model.masks import attend_with_weights

MakeLlama = Callable[..., Llama]


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


def test_query_head_h_reads_kv_head_h_over_queries_per_kv_head() -> None:
    query, key, value = (torch.randn(1, heads, 5, 8) for heads in (4, 2, 2))
    loop = torch.stack(
        [
            F.scaled_dot_product_attention(
                query[:, head], key[:, head // 2], value[:, head // 2], is_causal=True
            )
            for head in range(4)
        ],
        dim=1,
    )
    fused = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    assert_close(fused, loop, 1e-6)
    mixed, weights = attend_with_weights(query, key, value, None)
    assert_close(mixed, loop, 1e-6)
    assert weights.shape == (1, 4, 5, 5)
    tiled = F.scaled_dot_product_attention(
        query, key.repeat(1, 2, 1, 1), value.repeat(1, 2, 1, 1), is_causal=True
    )
    assert (tiled - loop).abs().max() > 0.1


def test_a_row_that_sees_nothing_gives_zero_not_nan() -> None:
    query, key, value = (torch.randn(1, 2, 2, 4) for _ in range(3))
    mask = torch.tensor([[False, False], [True, False]])
    mixed, weights = attend_with_weights(query, key, value, mask)
    assert torch.equal(mixed[:, :, 0], torch.zeros(1, 2, 4))
    assert torch.equal(weights[:, :, 0], torch.zeros(1, 2, 2))


@pytest.mark.parametrize(
    ("input_ids", "options", "named"),
    [
        (torch.zeros(1, 0, dtype=torch.long), {}, "input_ids"),
        (torch.zeros(0, 3, dtype=torch.long), {}, "input_ids"),
        (torch.zeros(3, dtype=torch.long), {}, "input_ids"),
        (torch.zeros(1, 3), {}, "input_ids"),
        (torch.tensor([[0, 61]]), {}, "input_ids=61: token ids run from 0 to 60"),
        (torch.tensor([[0, -1]]), {}, "input_ids=-1"),
        (torch.zeros(1, 129, dtype=torch.long), {}, "number of tokens=129"),
        (torch.tensor([[0, 1]]), {"attention_mask": torch.ones(1, 3)}, "attention_mask=(1, 3)"),
        (torch.tensor([[0, 1]]), {"position_ids": torch.tensor([[0]])}, "position_ids=(1, 1)"),
        (torch.tensor([[0, 1]]), {"position_ids": torch.tensor([[0, 128]])}, "tokens=129"),
    ],
)
def test_a_wrong_input_is_refused_in_one_line_before_the_cache_is_touched(
    make_llama: MakeLlama, input_ids: Tensor, options: dict[str, Tensor], named: str
) -> None:
    cache = DynamicCache()
    with pytest.raises(InvalidArgument) as caught:
        make_llama()(input_ids, cache=cache, **options)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
    assert cache.get_seq_length() == 0


def test_the_last_position_can_be_used_and_the_one_after_is_refused(make_llama: MakeLlama) -> None:
    model, cache = make_llama(), DynamicCache()
    model(torch.zeros(1, 127, dtype=torch.long), cache=cache)
    model(torch.tensor([[5]]), cache=cache)
    with pytest.raises(InvalidArgument, match="128 positions"):
        model(torch.tensor([[5]]), cache=cache)
    assert cache.get_seq_length() == 128

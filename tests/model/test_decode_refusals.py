"""What `prefill` and `generate` can't take is named before anything is computed."""

from typing import Any

import pytest
import torch

from kvlab.cache import make_cache
from kvlab.errors import InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.decode import generate, prefill
from kvlab.model.llama import Llama


@pytest.fixture(scope="module")
def model() -> Llama:
    """Give a random Llama of two layers."""
    config = LlamaConfig(
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=4,
        hidden_size=8,
        intermediate_size=16,
        vocab_size=20,
        max_seq_len=32,
    )
    return Llama(config).init_weights(seed=0)


@pytest.mark.parametrize("cache", [5, [], {}])
def test_what_is_no_cache_is_refused(model: Llama, cache: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be the name of a cache, a cache or None"):
        generate(model, [1, 2], max_new_tokens=1, cache=cache)


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("name", ["growing", "preallocated"])
def test_a_cache_for_another_number_of_layers_is_refused(
    model: Llama, name: str, num_layers: int
) -> None:
    cache = make_cache(name, num_layers=num_layers, capacity=8)
    with pytest.raises(InvalidArgument, match=f"layers of the cache={num_layers}: must be 2"):
        generate(model, [1, 2], max_new_tokens=1, cache=cache)
    with pytest.raises(InvalidArgument, match="layers of the cache"):
        prefill(model, [1, 2], cache)


@pytest.mark.parametrize(
    ("mask", "named"),
    [
        ("x", "attention_mask='x'"),
        ([[1, "x"]], "attention_mask="),
        (torch.tensor([[0.5, 1.0]]), "attention_mask=0.5"),
        (torch.tensor([[-1, 1]]), "attention_mask=-1"),
    ],
)
def test_a_mask_of_anything_but_0_and_1_is_refused(model: Llama, mask: Any, named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        generate(model, [1, 2], max_new_tokens=1, attention_mask=mask)
    assert named in str(caught.value)

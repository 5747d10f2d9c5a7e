"""A prompt of exactly the length asked for, the same each time."""

from types import SimpleNamespace

import pytest
import torch

from kvlab.errors import InvalidArgument
from kvlab.model.sample_text import sample_ids


def a_model(name: str) -> SimpleNamespace:
    device = torch.device("cpu")
    return SimpleNamespace(name=name, device=device, encode=lambda text: torch.arange(66)[None])


@pytest.mark.parametrize("name", ["smollm2", "tiny"])
@pytest.mark.parametrize("num_tokens", [1, 8, 64, 66, 67, 500])
def test_it_is_as_long_as_asked_for(name: str, num_tokens: int) -> None:
    ids = sample_ids(a_model(name), num_tokens)
    assert ids.shape == (1, num_tokens)
    assert torch.equal(ids, sample_ids(a_model(name), num_tokens))


def test_the_end_of_the_text_is_kept() -> None:
    assert sample_ids(a_model("smollm2"), 3).tolist() == [[63, 64, 65]]
    assert sample_ids(a_model("smollm2"), 68)[0, :3].tolist() == [64, 65, 0]


def test_no_token_is_no_prompt() -> None:
    with pytest.raises(InvalidArgument, match="num_tokens"):
        sample_ids(a_model("tiny"), 0)

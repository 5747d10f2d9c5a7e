"""transformers' own caches inside our Llama."""

from typing import Any

import pytest
import torch

from kvlab.cache import call_model, transformers_cache
from kvlab.errors import InvalidArgument

MASK = [[0, 0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]]  # two prompts of 3 and 7 tokens


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["dynamic", "static"])
@pytest.mark.parametrize("padded", [False, True])
def test_transformers_caches_run_in_our_llama(
    name: str, padded: bool, llama: Any, new_cache: Any, ids: Any
) -> None:
    prompt, cache = ids(2, 7), new_cache(name, capacity=12)
    mask = torch.tensor(MASK) if padded else torch.ones(2, 7, dtype=torch.long)
    mask = mask.to(prompt.device)
    pieces = [
        llama(prompt[:, start:end], cache=cache, attention_mask=mask[:, :end])
        for start, end in [(0, 4), (4, 5), (5, 7)]
    ]
    logits, whole = torch.cat(pieces, dim=1), llama(prompt, attention_mask=mask)
    close(logits[mask.bool()], whole[mask.bool()])


def test_transformers_fp8_cache_runs_in_our_llama_as_it_does_in_theirs(
    llama: Any, hf_llama: Any, new_cache: Any, ids: Any
) -> None:
    ours, theirs, prompt = new_cache("fp8"), new_cache("fp8"), ids(2, 9)
    for piece in prompt.split([6, 1, 2], dim=1):
        close(llama(piece, cache=ours), call_model(hf_llama, piece, cache=theirs)[0])
    off = (llama(prompt) - call_model(hf_llama, prompt, cache=new_cache("fp8"))[0]).abs().max()
    assert off < 1e-4  # the prefill itself attends to unrounded keys and values


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("sliding", "kind='sliding': must be one of dynamic, static, fp8"), ("static", "capacity=")],
)
def test_a_stock_cache_that_cannot_be_built_is_refused(kind: str, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        transformers_cache(kind, num_layers=2)

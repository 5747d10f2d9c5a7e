"""Drawing tokens: repeatable, private, and narrowed as transformers narrows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation import TopKLogitsWarper, TopPLogitsWarper

from kvlab.errors import InvalidArgument
from kvlab.model.sampling import Sampler, keep_top_k, keep_top_p


def random_logits(rows: int = 2, vocab_size: int = 50, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, vocab_size, generator=torch.Generator().manual_seed(seed)) * 3


@given(st.integers(0, 99), st.integers(1, 60))
def test_top_k_keeps_what_transformers_keeps(seed: int, k: int) -> None:
    logits = random_logits(seed=seed)
    assert torch.equal(keep_top_k(logits, k), TopKLogitsWarper(min(k, 50))(None, logits))


@given(st.integers(0, 99), st.floats(0.01, 0.99))
def test_top_p_keeps_what_transformers_keeps(seed: int, p: float) -> None:
    logits = random_logits(seed=seed)
    assert torch.equal(keep_top_p(logits, p), TopPLogitsWarper(p)(None, logits))


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-4}])
def test_the_narrowest_draw_is_greedy(options: dict[str, float]) -> None:
    logits = random_logits(rows=8)
    sampler = Sampler(**({"temperature": 1.0, "seed": 0} | options))
    assert torch.equal(sampler.pick(logits), logits.argmax(-1))


def test_the_same_seed_draws_the_same_and_leaves_the_global_state_alone() -> None:
    logits, state = random_logits(rows=64), torch.random.get_rng_state()
    draws = [Sampler(temperature=1.0, seed=seed).pick(logits).tolist() for seed in (7, 7, 8)]
    assert draws[0] == draws[1] != draws[2]
    assert torch.equal(torch.random.get_rng_state(), state)


def test_draws_follow_the_probabilities() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    sampler = Sampler(temperature=0.7, seed=3)
    drawn = sampler.pick(logits.expand(20_000, -1)).bincount(minlength=4) / 20_000
    torch.testing.assert_close(drawn, sampler.probabilities(logits)[0], atol=0.015, rtol=0)


def test_greedy_probabilities_lie_on_one_token() -> None:
    assert Sampler().probabilities(torch.tensor([[1.0, 3.0, 2.0]])).tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused(temperature: float, value: float) -> None:
    with pytest.raises(InvalidArgument, match="largest logits="):
        Sampler(temperature=temperature).pick(torch.tensor([[0.0, value], [0.0, 1.0]]))


def test_a_seed_that_torch_cannot_hold_is_named() -> None:
    with pytest.raises(InvalidArgument, match="seed=9223372036854775808: must be below"):
        Sampler(seed=2**63)

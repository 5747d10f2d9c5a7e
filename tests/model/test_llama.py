"""Our Llama gives the logits of transformers' Llama, however the tokens are fed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from kvlab.model.llama import Llama
from kvlab.model.rope_config import ROPE_KINDS

MakePair = Callable[..., Any]
MakeLlama = Callable[..., Llama]
VOCAB_SIZE = 61
HEADS: dict[str, dict[str, Any]] = {
    "MHA": {"num_key_value_heads": 4},
    "GQA": {"num_key_value_heads": 2},
    "MQA": {"num_key_value_heads": 1},
    "head_dim is not hidden/heads": {"head_dim": 20},
    "tied head": {"tie_word_embeddings": True},
    "biases": {"attention_bias": True, "mlp_bias": True},
}


@pytest.fixture(autouse=True)
def no_grad() -> Any:
    """Keep no graph."""
    with torch.no_grad():
        yield


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "changes",
    [*HEADS.values(), *({"rope": kind} for kind in ROPE_KINDS)],
    ids=[*HEADS, *ROPE_KINDS],
)
def test_logits_equal_those_of_transformers(make_pair: MakePair, changes: dict[str, Any]) -> None:
    pair = make_pair(**changes)
    input_ids = torch.randint(0, VOCAB_SIZE, (2, 24))
    expected = pair.reference(input_ids)
    assert expected.abs().max() > 1  # the logits are large enough for a fault to show
    assert_close(pair.ours(input_ids), expected)


def test_the_parameters_carry_the_names_of_transformers(make_pair: MakePair) -> None:
    pair = make_pair()
    assert pair.ours.state_dict().keys() == pair.theirs.state_dict().keys()


def test_a_tied_model_loads_with_and_without_a_head_and_keeps_one_matrix(
    make_llama: MakeLlama,
) -> None:
    first, second = make_llama(tie_word_embeddings=True), make_llama(tie_word_embeddings=True)
    weights = {
        name: value.clone() for name, value in first.state_dict().items() if "head" not in name
    }
    for assign in (False, True):
        second.load_state_dict(weights, assign=assign)
        assert second.lm_head.weight is second.model.embed_tokens.weight
    second.load_state_dict({**weights, "lm_head.weight": torch.zeros(1)})
    assert second.lm_head.weight is second.model.embed_tokens.weight


def test_an_untied_model_without_a_head_in_the_file_is_refused(make_llama: MakeLlama) -> None:
    model = make_llama()
    weights = {name: value for name, value in model.state_dict().items() if "head" not in name}
    with pytest.raises(RuntimeError, match=r"lm_head\.weight"):
        model.load_state_dict(weights)


def test_last_token_only_gives_the_last_row_of_all_logits(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    model = make_llama()
    last = model(prompt, last_token_only=True)
    assert last.shape == (2, 1, VOCAB_SIZE)
    assert_close(last, model(prompt)[:, -1:], 1e-6)


@pytest.mark.parametrize("changed", range(7))
def test_changing_token_j_changes_no_bit_of_a_logit_before_j(
    make_llama: MakeLlama, prompt: Tensor, changed: int
) -> None:
    model = make_llama()
    other = prompt.clone()
    other[:, changed] = (other[:, changed] + 1) % VOCAB_SIZE
    before, after = model(prompt), model(other)
    assert torch.equal(before[:, :changed], after[:, :changed])
    assert not torch.equal(before[:, changed], after[:, changed])


def test_an_empty_cache_does_not_lift_the_causal_mask(
    make_llama: MakeLlama, prompt: Tensor
) -> None:
    model, caches, logits = make_llama(), [], []
    for last in (3, 4):
        input_ids = prompt.clone()
        input_ids[:, 6] = last
        caches.append(DynamicCache())
        logits.append(model(input_ids, cache=caches[-1]))
    assert torch.equal(logits[0][:, :6], logits[1][:, :6])
    for first, second in zip(caches[0].layers, caches[1].layers, strict=True):
        assert torch.equal(first.keys[:, :, :6], second.keys[:, :, :6])
        assert torch.equal(first.values[:, :, :6], second.values[:, :, :6])


def test_weights_come_from_a_generator_of_their_own(make_llama: MakeLlama) -> None:
    first = make_llama()
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first.init_weights(seed=7, std=0.3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    second = make_llama()
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.gpu
def test_weights_have_equal_bytes_on_any_device(make_llama: MakeLlama) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    on_cpu, on_gpu = make_llama(), make_llama().to("cuda").init_weights(seed=7, std=0.3)
    for one, other in zip(on_cpu.parameters(), on_gpu.parameters(), strict=True):
        assert torch.equal(one, other.cpu())


def test_a_16_bit_model_keeps_its_rope_in_float32(make_llama: MakeLlama) -> None:
    model = make_llama().to(torch.bfloat16)
    assert model.rope.inv_freq.dtype == torch.float32
    assert model(torch.tensor([[1, 2]])).dtype == torch.bfloat16

"""Our four kinds of RoPE give the frequencies that transformers gives."""

from typing import Any

import pytest
import torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from kvlab.model.config import LlamaConfig
from kvlab.model.rope import Rope, inverse_frequencies, rotate

SIZES = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_size": 128,
    "intermediate_size": 8,
    "vocab_size": 8,
    "max_position_embeddings": 8192,
}
KINDS: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default", "rope_theta": 10000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 1024,
    },
    "yarn": {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "original_max_position_embeddings": 1024,
    },
    "yarn, no factor": {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": None,
        "original_max_position_embeddings": 1024,
    },
    "yarn, stated attention factor": {
        "rope_type": "yarn",
        "rope_theta": 1e6,
        "factor": 4.0,
        "attention_factor": 0.75,
        "beta_fast": 16,
        "beta_slow": 2,
        "original_max_position_embeddings": 2048,
    },
    "yarn, mscale, not truncated": {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 40.0,
        "mscale": 1.0,
        "mscale_all_dim": 0.7,
        "truncate": False,
        "original_max_position_embeddings": 4096,
    },
    "yarn, empty ramp": {
        "rope_type": "yarn",
        "rope_theta": 1e30,
        "factor": 2.0,
        "beta_fast": 1000.0,
        "beta_slow": 1000.0,
        "original_max_position_embeddings": 4,
    },
}


def both(kind: str, **changes: Any) -> tuple[Rope, LlamaRotaryEmbedding]:
    """Return our rope and transformers' for one config."""
    ours = LlamaConfig.from_hf({**SIZES, **changes, "rope_parameters": dict(KINDS[kind])})
    hf = transformers.LlamaConfig(**{**SIZES, **changes, "rope_parameters": dict(KINDS[kind])})
    return Rope(ours.rope, ours.head_dim), LlamaRotaryEmbedding(hf)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head_dim", [64, 6])
def test_frequencies_and_factor_equal_those_of_transformers(kind: str, head_dim: int) -> None:
    ours, theirs = both(kind, head_dim=head_dim)
    torch.testing.assert_close(ours.inv_freq, theirs.inv_freq, rtol=1e-5, atol=1e-12)
    assert ours.factor == pytest.approx(theirs.attention_scaling, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_turned_queries_and_keys_equal_those_of_transformers(kind: str) -> None:
    ours, theirs = both(kind)
    positions = torch.tensor([[0, 1, 5000], [7, 8, 9]])
    query, key = torch.randn(2, 3, 3, 64), torch.randn(2, 1, 3, 64)
    turn = ours.cos_sin(positions, torch.float32)
    expected = apply_rotary_pos_emb(query, key, *theirs(query, positions))
    torch.testing.assert_close(rotate(query, *turn), expected[0], rtol=1e-5, atol=2e-4)
    torch.testing.assert_close(rotate(key, *turn), expected[1], rtol=1e-5, atol=2e-4)


def test_scores_depend_only_on_the_distance_between_positions() -> None:
    rope = both("default")[0]
    query, key = torch.randn(1, 1, 1, 64), torch.randn(1, 1, 1, 64)

    def score(query_position: int, key_position: int) -> float:
        turned = [
            rotate(states, *rope.cos_sin(torch.tensor([[position]]), torch.float32))
            for states, position in ((query, query_position), (key, key_position))
        ]
        return float((turned[0] * turned[1]).sum())

    assert score(9, 4) == pytest.approx(score(105, 100), abs=1e-3)
    assert abs(score(9, 4) - score(9, 5)) > 1e-2


def test_position_zero_turns_nothing() -> None:
    rope = both("default")[0]
    states = torch.randn(1, 2, 1, 64)
    turn = rope.cos_sin(torch.zeros(1, 1, dtype=torch.long), torch.float32)
    assert torch.equal(rotate(states, *turn), states)


def test_a_stated_attention_factor_of_yarn_wins() -> None:
    rope = LlamaConfig.from_hf(
        {**SIZES, "rope_parameters": KINDS["yarn, stated attention factor"]}
    ).rope
    assert inverse_frequencies(rope, 64)[1] == 0.75


def test_frequencies_are_made_on_the_cpu_even_under_a_meta_device() -> None:
    with torch.device("meta"):
        rope = both("yarn")[0]
    assert rope.inv_freq.device.type == "cpu"
    assert torch.equal(rope.inv_freq, both("yarn")[0].inv_freq)

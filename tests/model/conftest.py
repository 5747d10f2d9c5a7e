"""Tiny random Llamas, ours and transformers', that hold the same weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama

SIZES: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 61,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
}
OLD_LENGTH = 16  # the context a scaled RoPE claims to have been trained on; tests go past it
ROPES: dict[str, dict[str, Any]] = {
    "default": {"rope_theta": 500.0},
    "linear": {"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 10000.0},
    "llama3": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 1000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": OLD_LENGTH,
        }
    },
    "yarn": {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1000.0,
            "factor": 4.0,
            "original_max_position_embeddings": OLD_LENGTH,
        }
    },
}


def settings(rope: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the tiny config with one kind of RoPE and other changes."""
    return {**SIZES, **ROPES[rope], **changes}


class Pair(NamedTuple):
    """Our Llama and transformers' with the same weights, and the config both were built from."""

    ours: Llama
    theirs: Any
    config: dict[str, Any]

    def reference(self, input_ids: Tensor, **kwargs: Any) -> Tensor:
        """Return transformers' logits (batch, q_len, vocab_size)."""
        with torch.no_grad():
            return self.theirs(input_ids, use_cache=False, **kwargs).logits


@pytest.fixture
def make_pair() -> Callable[..., Pair]:
    """Build a `Pair` from config changes; weights are large enough that faults show in logits."""

    def make(rope: str = "default", **changes: Any) -> Pair:
        import transformers

        config = settings(rope, changes)
        ours = Llama(LlamaConfig.from_hf(config)).init_weights(seed=7, std=0.3).eval()
        for name, parameter in ours.named_parameters():
            if name.endswith("bias"):
                parameter.data.normal_(0, 0.3)
        theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config)).eval()
        theirs.load_state_dict(ours.state_dict())
        return Pair(ours, theirs, config)

    return make


@pytest.fixture
def make_llama() -> Callable[..., Llama]:
    """Build our Llama alone, from config changes."""

    def make(rope: str = "default", **changes: Any) -> Llama:
        config = LlamaConfig.from_hf(settings(rope, changes))
        return Llama(config).init_weights(seed=7, std=0.3).eval()

    return make


@pytest.fixture
def new_cache() -> Callable[..., Any]:
    """Build one of transformers' own caches, "dynamic" or "static", empty."""

    def make(name: str = "dynamic", capacity: int = 32) -> Any:
        from transformers import LlamaConfig
        from transformers.cache_utils import DynamicCache, StaticCache

        config = LlamaConfig(**SIZES)
        if name == "static":
            return StaticCache(config=config, max_cache_len=capacity)
        return DynamicCache(config=config)

    return make


@pytest.fixture
def prompt() -> Tensor:
    """Two rows of 7 token ids."""
    return torch.randint(0, SIZES["vocab_size"], (2, 7), generator=torch.Generator().manual_seed(3))

"""A tiny random Llama, ours and transformers' with the same weights, and new caches by name."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from kvlab.cache import make_cache, transformers_cache
from kvlab.errors import Unsupported
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NUM_LAYERS = 3
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": NUM_LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 61,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
}
NewCache = Callable[..., Any]


@pytest.fixture(autouse=True)
def no_gradients() -> Any:
    """Caches serve inference; no test here needs a gradient unless it says so."""
    with torch.no_grad():
        yield


@pytest.fixture(scope="session")
def llama() -> Llama:
    """Our Llama; weights are large enough that faults show in the logits."""
    return Llama(LlamaConfig.from_hf(CONFIG)).init_weights(seed=7, std=0.3).to(DEVICE).eval()


@pytest.fixture(scope="session")
def hf_llama(llama: Llama) -> transformers.LlamaForCausalLM:
    """transformers' Llama with the weights of ours; it never stops before max_new_tokens."""
    config = transformers.LlamaConfig(**CONFIG, bos_token_id=None, eos_token_id=None)
    model = transformers.LlamaForCausalLM(config)
    model.load_state_dict(llama.state_dict())
    return model.to(DEVICE).eval()


@pytest.fixture
def new_cache() -> NewCache:
    """Return a function (name, capacity) -> new cache, ours or transformers'."""

    def make(name: str, capacity: int = 32) -> Any:
        if name in ("growing", "preallocated"):
            return make_cache(name, num_layers=NUM_LAYERS, capacity=capacity)
        try:
            return transformers_cache(name, num_layers=NUM_LAYERS, capacity=capacity)
        except Unsupported as reason:
            pytest.skip(str(reason))

    return make


@pytest.fixture
def ids() -> Callable[..., Tensor]:
    """Return a function (batch, length, seed) -> random token ids."""

    def make(batch: int, length: int, seed: int = 1) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        high = CONFIG["vocab_size"]
        return torch.randint(1, high, (batch, length), generator=generator).to(DEVICE)

    return make

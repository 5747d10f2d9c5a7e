"""One tiny config of each architecture family, made by transformers' real config classes.

Small enough to build and run in a moment; the structure is that of the real models. Left out:
anything about quality, for the weights are random.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PretrainedConfig

WINDOW = 8
"""Tokens that a windowed layer of these models may see."""

SOURCE = 10
"""Positions of the image that a cross-attention layer looks at."""

_BASE = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "vocab_size": 64,
}
_TWO = {"num_key_value_heads": 2, "head_dim": 16}
_SIX = _BASE | _TWO | {"num_hidden_layers": 6, "sliding_window": WINDOW}
_MOE = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
_LATENT = {
    "kv_lora_rank": 32,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "num_nextn_predict_layers": 0,
}
_SHARED = {
    "intermediate_size": [64] * 6,
    "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
    "vocab_size_per_layer_input": 64,
    "hidden_size_per_layer_input": 8,
    "laurel_rank": 4,
    "activation_sparsity_pattern": [0.0] * 6,
}
_STATE = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "shared_expert_intermediate_size": 16,
    "num_experts": 4,
}


@dataclass(frozen=True)
class Family:
    """An architecture family: its name, a model that has it, and how its tiny config is made.

    `config_class` and `model_class` are names in transformers.
    """

    name: str
    known_from: str
    config_class: str
    model_class: str
    fields: dict[str, Any]
    source_length: int = 0

    def config(self) -> "PretrainedConfig":
        """Return the tiny config, an object of the real class."""
        return _named(self.config_class)(**self.fields)

    def model(self, config: "PretrainedConfig") -> Any:
        """Return a model with random weights for a config of this family."""
        return _named(self.model_class)(config)


def _named(name: str) -> Callable[..., Any]:
    """Return a class of transformers; one is not among its top-level names."""
    import transformers

    if name == "MllamaTextConfig":
        from transformers.models.mllama.configuration_mllama import MllamaTextConfig

        return MllamaTextConfig
    return getattr(transformers, name)


FAMILIES: tuple[Family, ...] = (
    Family(
        "full, MHA",
        "Llama 2 7B",
        "LlamaConfig",
        "LlamaForCausalLM",
        _BASE | {"num_key_value_heads": 4, "head_dim": 16},
    ),
    Family("full, GQA", "Llama 3.1", "LlamaConfig", "LlamaForCausalLM", _BASE | _TWO),
    Family(
        "full, MQA",
        "Falcon 7B",
        "FalconConfig",
        "FalconForCausalLM",
        {k: v for k, v in _BASE.items() if k != "intermediate_size"} | {"multi_query": True},
    ),
    Family(
        "sliding",
        "Mistral 7B v0.1",
        "MistralConfig",
        "MistralForCausalLM",
        _BASE | _TWO | {"sliding_window": WINDOW},
    ),
    Family(
        "sliding and full",
        "Gemma 3",
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        _SIX | {"sliding_window_pattern": 6},
    ),
    Family(
        "latent (MLA)",
        "DeepSeek-V3",
        "DeepseekV3Config",
        "DeepseekV3ForCausalLM",
        _BASE | _MOE | _LATENT | {"num_key_value_heads": 4, "first_k_dense_replace": 1},
    ),
    Family("shared layers", "Gemma 3n", "Gemma3nTextConfig", "Gemma3nForCausalLM", _SIX | _SHARED),
    Family(
        "state and full",
        "Qwen3-Next",
        "Qwen3NextConfig",
        "Qwen3NextForCausalLM",
        _BASE | _TWO | _MOE | _STATE,
    ),
    Family(
        "cross-attention",
        "Llama 3.2 Vision",
        "MllamaTextConfig",
        "MllamaForCausalLM",
        _BASE | _TWO | {"cross_attention_layers": [1], "pad_token_id": 0},
        source_length=SOURCE,
    ),
)
"""The families, from the plain one to those that keep other things than keys and values."""

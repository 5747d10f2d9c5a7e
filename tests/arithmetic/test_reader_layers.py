"""Layers of every kind: from lists, letters, digits, periods, flags and the rules of classes.

The expected numbers are worked out by hand from what each field means.
"""

from typing import Any

import pytest

from kvlab.arithmetic.reader import read_model

Config = dict[str, Any]
BASE: Config = {"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_key_value_heads": 128}


def per_token(config: Config, **options: bool) -> int:
    return 2 * read_model(config, **options).elements_per_token


def kinds(config: Config) -> list[tuple[str, int, int, int | None]]:
    groups = read_model(config).groups
    return [(g.kind, g.count, g.elements_per_token, g.window) for g in groups]


WINDOW = BASE | {"num_key_value_heads": 2, "sliding_window": 128}
QWEN = WINDOW | {"model_type": "qwen2", "max_window_layers": 3}
LAYERS: dict[str, tuple[Config, list[tuple[str, int, int, int | None]]]] = {
    "every layer slides": (WINDOW, [("windowed", 4, 256, 128)]),
    "use_sliding_window is false": (
        WINDOW | {"use_sliding_window": False},
        [("full", 4, 256, None)],
    ),
    "Qwen2 without the flag": (QWEN, [("full", 4, 256, None)]),
    "Qwen2 with the flag": (
        QWEN | {"use_sliding_window": True},
        [("full", 3, 256, None), ("windowed", 1, 256, 128)],
    ),
    "Qwen2-MoE with the flag": (
        QWEN | {"model_type": "qwen2_moe", "use_sliding_window": True},
        [("windowed", 2, 256, 128), ("full", 2, 256, None)],
    ),
    "Gemma 2 alternates": (
        WINDOW | {"model_type": "gemma2", "head_dim": 64},
        [("windowed", 2, 256, 128), ("full", 2, 256, None)],
    ),
    "a period": (
        WINDOW | {"sliding_window_pattern": 4},
        [("windowed", 3, 256, 128), ("full", 1, 256, None)],
    ),
    "a pattern in letters": (
        WINDOW | {"sliding_window_pattern": "LLG"},
        [("windowed", 3, 256, 128), ("full", 1, 256, None)],
    ),
    "chunks": (
        BASE | {"model_type": "llama4_text", "num_key_value_heads": 2, "head_dim": 64}
        | {"attention_chunk_size": 8192},
        [("chunked", 3, 256, 8192), ("full", 1, 256, None)],
    ),
    "MiMo": (
        WINDOW | {"model_type": "mimo_v2_flash", "hybrid_layer_pattern": [0, 1, 1, 0]}
        | {"head_dim": 192, "v_head_dim": 128, "swa_num_key_value_heads": 4},
        [("full", 2, 640, None), ("windowed", 2, 1280, 128)],
    ),
    "the tail shares": (
        BASE | {"num_key_value_heads": 2, "num_kv_shared_layers": 3},
        [("full", 1, 256, None), ("shared", 3, 0, None)],
    ),
    "pairs share": (
        BASE | {"num_key_value_heads": 2, "use_cla": True, "cla_share_factor": 2},
        [("full", 2, 256, None), ("shared", 2, 0, None)],
    ),
    "a share factor that is not used": (
        BASE | {"num_key_value_heads": 2, "use_cla": False, "cla_share_factor": 2},
        [("full", 4, 256, None)],
    ),
    "Nemotron's letters": (
        {"model_type": "nemotron_h", "hybrid_override_pattern": "M-*E", "head_dim": 128}
        | {"num_attention_heads": 8, "num_key_value_heads": 2, "mamba_num_heads": 4}
        | {"mamba_head_dim": 64, "ssm_state_size": 16, "n_groups": 2, "conv_kernel": 4},
        [("state", 1, 0, None), ("none", 2, 0, None), ("full", 1, 512, None)],
    ),
    "Jamba's period and offset": (
        BASE | {"model_type": "jamba", "attn_layer_period": 4, "attn_layer_offset": 2}
        | {"num_key_value_heads": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
        [("state", 3, 0, None), ("full", 1, 256, None)],
    ),
    "MiniMax: 1 is softmax": (
        BASE | {"model_type": "minimax_text_01", "attn_type_list": [0, 0, 0, 1]}
        | {"num_key_value_heads": 2},
        [("state", 3, 0, None), ("full", 1, 256, None)],
    ),
    "Kimi counts layers from 1": (
        BASE | LATENT | {"model_type": "kimi_linear"}
        | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3],
           "num_heads": 8, "head_dim": 64, "short_conv_kernel_size": 4}},
        [("state", 3, 0, None), ("latent", 1, 576, None)],
    ),
    "RecurrentGemma": (
        BASE | {"model_type": "recurrent_gemma", "num_key_value_heads": 1, "lru_width": 512}
        | {"block_types": ["recurrent", "attention"], "attention_window_size": 2048},
        [("state", 2, 0, None), ("windowed", 2, 128, 2048)],
    ),
    "cross-attention adds nothing with a token": (
        BASE | {"num_key_value_heads": 2, "cross_attention_layers": [1]},
        [("full", 3, 256, None), ("cross", 1, 0, None)],
    ),
    "an encoder-decoder has both in each layer": (
        {"model_type": "t5", "num_layers": 2, "num_heads": 8, "d_kv": 64, "d_model": 512},
        [("full", 2, 1024, None), ("cross", 2, 0, None)],
    ),
    "attention beside a state": (
        BASE | {"model_type": "falcon_h1", "num_key_value_heads": 2, "mamba_n_heads": 4}
        | {"mamba_d_ssm": 512, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4},
        [("full", 4, 256, None), ("state", 4, 0, None)],
    ),
    "Gemma 4: full layers have heads of their own": (
        WINDOW | {"model_type": "gemma4_text", "layer_types": ["sliding_attention"] * 3
           + ["full_attention"], "head_dim": 64, "global_head_dim": 256}
        | {"num_global_key_value_heads": 1, "attention_k_eq_v": True},
        [("windowed", 3, 256, 128), ("full", 1, 512, None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "expected"), LAYERS.values(), ids=LAYERS)
def test_layers_are_of_the_kinds_that_the_config_means(
    config: Config, expected: list[tuple[str, int, int, int | None]]
) -> None:
    assert kinds(config) == expected


def test_an_indexer_keeps_keys_beside_the_latents_and_may_be_shared() -> None:
    config = BASE | LATENT | {"model_type": "deepseek_v32", "index_head_dim": 128}
    assert [layer.index_elements for layer in read_model(config).layers] == [128] * 4
    config["indexer_types"] = ["full", "shared", "shared", "full"]
    assert [layer.index_elements for layer in read_model(config).layers] == [128, 0, 0, 128]


def test_layers_for_multi_token_prediction_count_only_when_asked() -> None:
    config = BASE | LATENT | {"num_nextn_predict_layers": 1}
    assert per_token(config) == 2 * 4 * 576
    assert any("not counted" in note for note in read_model(config).notes)
    assert per_token(config, include_mtp=True) == 2 * 5 * 576
    assert read_model(config, include_mtp=True).num_layers == 5


def test_a_looped_layer_stores_once_for_each_pass() -> None:
    loops = {"loop_layer_index_start": 1, "loop_layer_index_end": 3, "loop_num_passes": 3}
    assert read_model(BASE | loops).num_layers == 8

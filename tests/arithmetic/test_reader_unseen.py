"""Configs of models that are not in the catalogue, written as their makers publish them."""

from typing import Any

import pytest

from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request

Config = dict[str, Any]

PER_TOKEN: dict[str, tuple[int, Config]] = {
    "whisper-large-v3-turbo: the decoder has 4 layers, the encoder 32": (
        4 * 2 * 1280,
        {"model_type": "whisper", "d_model": 1280, "num_hidden_layers": 32, "encoder_layers": 32,
         "decoder_layers": 4, "encoder_attention_heads": 20, "decoder_attention_heads": 20},
    ),
    "a T5 whose decoder is shorter than its encoder": (
        6 * 2 * 8 * 64,
        {"model_type": "t5", "d_model": 512, "num_layers": 12, "num_decoder_layers": 6,
         "num_heads": 8, "d_kv": 64, "is_encoder_decoder": True},
    ),
    "OLMo's own spelling of multi-query": (
        32 * 2 * 128,
        {"model_type": "hf_olmo", "d_model": 4096, "n_heads": 32, "n_layers": 32,
         "multi_query_attention": True},
    ),
    "MPT with one head": (
        32 * 2 * 128,
        {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
         "attn_config": {"attn_type": "multiquery_attention"}},
    ),
    "a mistral that leaves its size to its class": (
        32 * 2 * 8 * 128,
        {"model_type": "idefics2", "text_config": {"model_type": "mistral",
                                                   "sliding_window": None}},
    ),
    "MiniCPM3 keeps latents": (
        62 * 288,
        {"model_type": "minicpm3", "num_hidden_layers": 62, "hidden_size": 2560,
         "num_attention_heads": 40, "num_key_value_heads": 40, "kv_lora_rank": 256,
         "qk_rope_head_dim": 32},
    ),
    "the params.json of Mistral": (
        40 * 2 * 8 * 128,
        {"dim": 5120, "n_layers": 40, "head_dim": 128, "n_heads": 32, "n_kv_heads": 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PER_TOKEN)
def test_a_model_outside_the_catalogue_has_its_elements_per_token(name: str) -> None:
    elements, config = PER_TOKEN[name]
    assert read_model(config).elements_per_token == elements


def test_whisper_keeps_its_source_in_the_layers_of_its_decoder() -> None:
    _, config = next(iter(PER_TOKEN.values()))
    sized = size_request(read_model(config), context=448, source_length=1500)
    assert sized.cross_bytes == 2 * 4 * 2 * 1280 * 1500


@pytest.mark.parametrize("expand", [2, 16])
def test_a_mamba_config_writes_its_inner_width_and_it_wins_over_expand(expand: int) -> None:
    fields = {"model_type": "falcon_mamba", "num_hidden_layers": 2, "hidden_size": 64,
              "intermediate_size": 128, "state_size": 16, "conv_kernel": 4,
              "expand": expand}  # fmt: skip
    states = [(s.name, s.elements) for s in read_model(fields).layers[0].states]
    assert states == [("conv", 128 * 4), ("recurrent", 128 * 16)]


BASE = {"hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 7}


def test_modernbert_decoder_looks_back_over_half_of_its_local_attention() -> None:
    config = BASE | {"model_type": "modernbert-decoder", "local_attention": 128}
    layers = read_model(config | {"global_attn_every_n_layers": 4}).layers
    assert [layer.window for layer in layers] == [None, 64, 64, 64, None, 64, 64]


@pytest.mark.parametrize(("window", "kind"), [(None, "full"), (16, "windowed")])
def test_ministral_3_slides_only_when_a_window_is_written(window: int | None, kind: str) -> None:
    config = BASE | {"model_type": "ministral3", "head_dim": 8, "sliding_window": window}
    assert {layer.kind for layer in read_model(config).layers} == {kind}


def test_sizes_of_states_in_a_config_of_an_unknown_type_are_said() -> None:
    fields = BASE | {"num_key_value_heads": 2, "model_type": "brand_new", "mamba_d_state": 16}
    (unknown, unread) = read_model(fields).notes
    assert "'brand_new' is unknown: read by its fields alone as full layers" in unknown
    assert unread.startswith("mamba_d_state written, but no field says which layers keep a state")

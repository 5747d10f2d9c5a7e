"""Reading configs: heads under every spelling and flag, nesting, defaults, notes, the hub.

The expected numbers are worked out by hand from what each field means.
"""

import io
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from kvlab._paths import data_dir
from kvlab.arithmetic.reader import read_model
from kvlab.errors import InvalidArgument, KvlabError, ModelUnavailable

Config = dict[str, Any]
BASE: Config = {"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_key_value_heads": 128}


def per_token(config: Config) -> int:
    return 2 * read_model(config).elements_per_token


# -- heads -----------------------------------------------------------------------------------

FALCON = {"model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192}
FALCON |= {"num_attention_heads": 128, "num_kv_heads": 8}
HEADS = {
    "MHA when KV heads are absent": (BASE, 2 * 4 * 2 * 512),
    "MHA when KV heads are null": (BASE | {"num_key_value_heads": None}, 2 * 4 * 2 * 512),
    "GQA": (BASE | {"num_key_value_heads": 2}, 2 * 4 * 2 * 128),
    "head_dim of its own": (BASE | {"head_dim": 256}, 2 * 4 * 2 * 8 * 256),
    "head_dim of its own, not hidden / heads": (
        {"num_hidden_layers": 4, "hidden_size": 3584, "num_attention_heads": 16, "head_dim": 256}
        | {"num_key_value_heads": 2},
        8192,
    ),
    "K and V of different width": (BASE | {"head_dim": 192, "v_head_dim": 128}, 2 * 4 * 8 * 320),
    "class default of mistral": (
        BASE | {"model_type": "mistral", "num_attention_heads": 16, "sliding_window": None},
        2 * 4 * 2 * 8 * 32,
    ),
    "GPT-2 names": ({"n_layer": 12, "n_head": 12, "n_embd": 768}, 36_864),
    "BLOOM names": ({"n_layer": 30, "num_attention_heads": 32, "n_embed": 4096}, 491_520),
    "MPT multi-query": (
        {"model_type": "mpt", "n_layers": 2, "d_model": 64, "n_heads": 4}
        | {"attn_config": {"attn_type": "multiquery_attention"}},
        2 * 2 * 2 * 16,
    ),
    "DBRX": (
        {"model_type": "dbrx", "n_layers": 40, "d_model": 6144, "n_heads": 48}
        | {"attn_config": {"kv_n_heads": 8}},
        163_840,
    ),
    "Falcon-40B": (FALCON | {"new_decoder_architecture": True, "multi_query": True}, 122_880),
    "Falcon, multi-query, KV heads ignored": (FALCON | {"multi_query": True}, 60 * 2 * 2 * 64),
    "Falcon, no multi-query": (FALCON | {"multi_query": False, "num_kv_heads": None}, 1_966_080),
    "RefinedWeb names": (
        {"model_type": "RefinedWebModel", "n_layer": 32, "n_head": 71, "hidden_size": 4544}
        | {"multi_query": True},
        8192,
    ),
    "GPT-BigCode": (
        {"model_type": "gpt_bigcode", "n_layer": 24, "n_embd": 2048, "n_head": 16},
        12_288,
    ),
    "ChatGLM": (
        {"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "kv_channels": 128}
        | {"num_attention_heads": 32, "multi_query_attention": True, "multi_query_group_num": 2},
        28_672,
    ),
    "heads listed by layer": (
        {"num_transformer_layers": 3, "model_dim": 1280, "head_dim": 64}
        | {"num_kv_heads": [3, 4, 5], "num_query_heads": [12, 16, 20]},
        2 * 2 * 64 * 12,
    ),
    "overrides by layer": (
        {"num_hidden_layers": 6, "num_attention_heads": 32, "num_key_value_heads": 8}
        | {"head_dim": 256}
        | {"per_layer_config": {"05": {"num_key_value_heads": 4, "head_dim": 512}}},
        49_152,
    ),
    "blocks of DeciLM": (
        {"num_attention_heads": 64, "hidden_size": 8192, "num_key_value_heads": None}
        | {"block_configs": [
            {"attention": {"n_heads_in_group": 8}}, {"attention": {"no_op": True}}]},
        2 * 2 * 8 * 128,
    ),
    "latent before heads": (BASE | LATENT, 2 * 4 * 576),
    "no latent when use_mla is false": (
        BASE | {"kv_lora_rank": None, "use_mla": False, "v_head_dim": 0},
        2 * 4 * 2 * 512,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "expected"), HEADS.values(), ids=HEADS)
def test_heads_are_read_as_the_fields_mean_them(config: Config, expected: int) -> None:
    assert per_token(config) == expected


# -- nesting, defaults and notes -------------------------------------------------------------


@pytest.mark.parametrize("block", ["text_config", "language_config", "llm_config", "my_decoder"])
def test_the_language_model_is_found_and_named(block: str) -> None:
    config = {"vision_config": {"num_hidden_layers": 33}, block: BASE}
    model = read_model(config)
    assert (model.num_layers, model.text_block) == (4, block)
    assert f"the language model was read from {block}" in model.notes


def test_a_thinker_is_followed_to_its_text() -> None:
    model = read_model({"thinker_config": {"text_config": BASE, "audio_config": {}}})
    assert (model.num_layers, model.text_block) == (4, "thinker_config.text_config")


def test_a_nested_config_may_leave_out_what_its_class_knows_and_this_is_said() -> None:
    text = {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560}
    model = read_model({"model_type": "gemma3", "text_config": text | {"sliding_window": 1024}})
    assert 2 * model.elements_per_token == 139_264
    assert "num_key_value_heads is not in the config: 4, the default of gemma3_text" in model.notes
    assert any("pattern of gemma3_text" in note for note in model.notes)


def test_an_unknown_type_is_never_read_silently() -> None:
    model = read_model(BASE | {"model_type": "zork9"})
    assert "model_type 'zork9' is unknown" in model.notes[-1]
    assert "8 head(s) of 64 + 64 elements" in model.notes[-1]
    assert "names no model_type" in read_model(BASE).notes[-1]


def test_an_unknown_layer_type_is_read_as_full_and_said() -> None:
    model = read_model(BASE | {"layer_types": ["warp_attention"] * 4})
    assert {layer.kind for layer in model.layers} == {"full"}
    assert any("'warp_attention' is unknown" in note for note in model.notes)


def test_a_state_that_cannot_be_sized_is_said() -> None:
    model = read_model(BASE | {"model_type": "rwkv", "layer_types": ["rwkv"] * 4})
    assert any("could not be sized" in note for note in model.notes)


def test_the_hub_is_asked_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        return io.BytesIO(json.dumps(BASE).encode())

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    with pytest.raises(InvalidArgument, match="no such model in the catalogue"):
        read_model("someone/New-1B")
    assert asked == []
    model = read_model("someone/New-1B", allow_hub=True)
    assert (model.name, model.num_layers) == ("someone/New-1B", 4)
    assert asked[0].endswith("/someone/New-1B/resolve/main/config.json")


def test_a_hub_that_cannot_be_reached_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_network(url: str, timeout: float) -> io.BytesIO:
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    with pytest.raises(ModelUnavailable, match=r"save its config\.json and give its path"):
        read_model("someone/New-1B", allow_hub=True)


@pytest.mark.parametrize("name", ["tiny", "Tiny-GQA", "tiny-window"])
def test_a_bundled_model_is_known_by_its_name_here_too(name: str) -> None:
    assert read_model(name) == read_model(data_dir() / name.lower(), name=name.lower())


@pytest.mark.parametrize("name", ["..", "../data/tiny", "tiny/", "engine_runs"])
def test_no_other_folder_of_the_data_is_taken_for_a_model(name: str) -> None:
    with pytest.raises(KvlabError, match="no such model"):
        read_model(name)

"""A config.json either gives the sizes it states or is refused by the name of the field."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvlab.errors import InvalidArgument, KvlabError, Unsupported
from kvlab.model.config import LlamaConfig
from kvlab.model.rope_config import RopeConfig

SMOLLM2 = {
    "model_type": "llama",
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
}
WINDOWED = {
    "model_type": "ministral",
    "sliding_window": 4096,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"] * 10,
}
YARN = {"type": "yarn", "factor": 2.0}
NEEDED = (
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_size",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in SMOLLM2.items() if name != key}


def test_the_sizes_of_a_real_config_are_read() -> None:
    config = LlamaConfig.from_hf(SMOLLM2)
    assert (config.num_layers, config.num_heads, config.num_kv_heads) == (30, 9, 3)
    assert (config.head_dim, config.queries_per_kv_head, config.max_seq_len) == (64, 3, 8192)
    assert config.tied_embeddings
    assert config.rope == RopeConfig(theta=100000)
    assert config.to_shape("smollm2").head_dim == 64


def test_head_dim_is_read_before_it_is_derived() -> None:
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    assert LlamaConfig.from_hf({**SMOLLM2, **sizes, "head_dim": 32}).head_dim == 32
    assert LlamaConfig.from_hf({**SMOLLM2, **sizes, "head_dim": None}).head_dim == 16


def test_missing_kv_heads_mean_one_for_each_query_head() -> None:
    assert LlamaConfig.from_hf(without("num_key_value_heads")).num_kv_heads == 9
    assert LlamaConfig.from_hf({**SMOLLM2, "num_key_value_heads": None}).num_kv_heads == 9


def test_old_and_new_rope_keys_give_the_same_rope() -> None:
    numbers = {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    old = {**SMOLLM2, "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", **numbers}}
    new = without("rope_theta")
    new["rope_parameters"] = {"rope_type": "llama3", "rope_theta": 5e5, **numbers}
    assert LlamaConfig.from_hf(old).rope == LlamaConfig.from_hf(new).rope
    assert LlamaConfig.from_hf(new).rope.theta == 5e5
    assert LlamaConfig.from_hf({**SMOLLM2, "rope_scaling": None}).rope.kind == "default"


def test_yarn_without_a_factor_takes_the_ratio_of_the_lengths() -> None:
    scaling = {"type": "yarn", "original_max_position_embeddings": 2048}
    assert LlamaConfig.from_hf({**SMOLLM2, "rope_scaling": scaling}).rope.factor == 4.0


@pytest.mark.parametrize("key", NEEDED)
def test_a_missing_size_is_named_and_nothing_is_guessed(key: str) -> None:
    with pytest.raises(InvalidArgument, match=key):
        LlamaConfig.from_hf(without(key))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_attention_heads": 7, "num_key_value_heads": 2, "head_dim": 64}, "num_heads=7"),
        ({"num_attention_heads": 7}, "hidden_size=576"),
        ({"head_dim": 63}, "head_dim=63"),
        ({"num_hidden_layers": 0}, "num_hidden_layers=0"),
        ({"num_key_value_heads": 0}, "num_kv_heads=0"),
        ({"vocab_size": "49152"}, "vocab_size='49152'"),
        ({"hidden_size": True}, "hidden_size=True"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps=nan"),
        ({"hidden_act": "gelu"}, "hidden_act='gelu'"),
        ({"model_type": "gpt2"}, "model_type='gpt2'"),
        ({"model_type": None}, "model_type=None"),
        ({"model_type": "mistral"}, "sliding_window='missing'"),
        ({"model_type": "ministral", "sliding_window": 0}, "sliding_window=0"),
        (WINDOWED | {"model_type": "llama"}, "layer_types=['sliding_attention'"),
        (WINDOWED | {"model_type": "mistral"}, "layer_types=['sliding_attention'"),
        (WINDOWED | {"sliding_window": None}, "sliding_window=None"),
        (WINDOWED | {"num_hidden_layers": 2}, "layer_types='30 names'"),
        (WINDOWED | {"layer_types": ["chunked_attention"] * 30}, "layer_types=['chunked"),
        (WINDOWED | {"layer_types": "full_attention"}, "layer_types='full_attention'"),
        (WINDOWED | {"layer_types": 5}, "layer_types=5"),
        ({"quantization_config": {"quant_method": "awq"}}, "quant_method='awq'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
        ({"rope_scaling": {"type": "linear"}}, "rope factor=None"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "rope factor=0"),
        ({"rope_scaling": "linear"}, "rope_parameters='linear'"),
        ({"rope_scaling": {"type": "mrope"}}, "rope_type='mrope'"),
        ({"rope_theta": -1.0}, "rope theta=-1.0"),
        ({"quantization_config": "awq"}, "quant_method='awq'"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings='false'"),
        ({"attention_bias": 1}, "attention_bias=1"),
        ({"vocab_size": 2**70}, f"widest matrix={2**70}"),
        ({"rope_scaling": YARN | {"beta_fast": 0}}, "rope beta_fast=0"),
        ({"rope_scaling": YARN | {"beta_slow": "x"}}, "rope beta_slow='x'"),
        ({"rope_scaling": YARN | {"attention_factor": "x"}}, "rope attention_factor='x'"),
        ({"rope_scaling": YARN | {"mscale": -1}}, "rope mscale=-1"),
        ({"rope_scaling": YARN | {"truncate": "no"}}, "rope truncate='no'"),
        ({"rope_scaling": YARN, "rope_theta": 1.0}, "rope theta=1.0"),
    ],
)
def test_a_config_that_cannot_be_computed_is_refused_by_name(
    changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        LlamaConfig.from_hf({**SMOLLM2, **changes})
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_a_rope_that_moves_old_angles_is_refused_as_not_cache_stable(kind: str) -> None:
    with pytest.raises(Unsupported, match="not cache-stable"):
        LlamaConfig.from_hf({**SMOLLM2, "rope_scaling": {"type": kind, "factor": 2.0}})


def test_a_mistral_without_a_window_is_a_llama() -> None:
    mistral = {**SMOLLM2, "model_type": "mistral", "sliding_window": None}
    assert LlamaConfig.from_hf(mistral) == LlamaConfig.from_hf(SMOLLM2)
    del mistral["num_key_value_heads"]  # a Mistral would fill in 8 here, a Llama its query heads
    with pytest.raises(InvalidArgument, match="num_key_value_heads"):
        LlamaConfig.from_hf(mistral)


def test_windows_are_read_as_transformers_runs_them() -> None:
    config = LlamaConfig.from_hf({**SMOLLM2, **WINDOWED})
    assert config.layer_windows == (4096, None, None) * 10
    assert config.first_layers(2).layer_windows == (4096, None)
    mistral = LlamaConfig.from_hf({**SMOLLM2, "model_type": "mistral", "sliding_window": 64})
    assert mistral.layer_windows == (64,) * 30
    assert mistral.first_layers(2).layer_windows == (64, 64)
    llama = LlamaConfig.from_hf({**SMOLLM2, "sliding_window": 64})  # transformers' Llama: no window
    assert llama == LlamaConfig.from_hf(SMOLLM2)
    assert [c.hf_model_type for c in (config, mistral, llama)] == ["ministral"] * 2 + ["llama"]


def test_a_windowed_model_has_no_shape_of_full_layers() -> None:
    with pytest.raises(Unsupported, match="sliding_window=4096"):
        LlamaConfig.from_hf({**SMOLLM2, **WINDOWED}).to_shape()


def test_a_config_is_read_from_a_file_or_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(SMOLLM2), encoding="utf-8")
    assert LlamaConfig.from_file(file) == LlamaConfig.from_file(tmp_path)
    file.write_text("{", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="not a JSON file"):
        LlamaConfig.from_file(file)
    file.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidArgument, match="not a JSON file"):
        LlamaConfig.from_file(file)
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="one JSON object"):
        LlamaConfig.from_file(file)
    with pytest.raises(KvlabError, match="no such file"):
        LlamaConfig.from_file(tmp_path / "nowhere")


def test_reading_a_config_loads_no_torch() -> None:
    code = "import sys, kvlab.model.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

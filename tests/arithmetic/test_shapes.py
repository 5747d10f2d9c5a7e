"""Reading a shape from a config.json: defaults, and what is refused."""

import pytest

from kvlab.arithmetic.shapes import ModelShape
from kvlab.errors import InvalidArgument, Unsupported

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "vocab_size": 100,
}


def test_missing_or_null_kv_heads_mean_one_per_query_head() -> None:
    without = {k: v for k, v in CONFIG.items() if k != "num_key_value_heads"}
    assert ModelShape.from_config(without).num_kv_heads == 4
    assert ModelShape.from_config(CONFIG | {"num_key_value_heads": None}).num_kv_heads == 4


def test_head_dim_is_read_before_it_is_computed() -> None:
    assert ModelShape.from_config(CONFIG).head_dim == 8
    assert ModelShape.from_config(CONFIG | {"head_dim": None}).head_dim == 8
    assert ModelShape.from_config(CONFIG | {"head_dim": 16}).head_dim == 16
    assert ModelShape.from_config(CONFIG | {"head_dim": 5, "hidden_size": 33}).head_dim == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": None}, "config.num_hidden_layers=None: is missing"),
        ({"num_hidden_layers": 0}, "config.num_hidden_layers=0"),
        ({"num_hidden_layers": "2"}, "config.num_hidden_layers='2'"),
        ({"vocab_size": 1.5}, "config.vocab_size=1.5"),
        ({"num_key_value_heads": 3}, "num_kv_heads=3: must divide the 4 query heads"),
        ({"hidden_size": 33}, "config.hidden_size=33: must be a multiple of the 4 heads"),
        ({"max_position_embeddings": -1}, "max_seq_len=-1"),
    ],
)
def test_the_field_at_fault_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        ModelShape.from_config(CONFIG | change)


def test_a_model_of_another_kind_is_refused() -> None:
    with pytest.raises(Unsupported, match="deepseek_v3"):
        ModelShape.from_config(CONFIG | {"model_type": "deepseek_v3"})


def test_a_mistral_without_a_window_is_a_llama_here_too() -> None:
    sizes = {
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "hidden_size": 32,
        "intermediate_size": 64,
        "vocab_size": 100,
    }
    mistral = {**sizes, "model_type": "mistral", "num_key_value_heads": 2}
    no_window = {**mistral, "sliding_window": None}
    assert ModelShape.from_config(no_window).num_kv_heads == 2
    with pytest.raises(InvalidArgument, match="num_key_value_heads"):  # 8 there, not 4
        ModelShape.from_config({**no_window, "num_key_value_heads": None})
    for windowed in ({**mistral, "sliding_window": 4096}, mistral):
        with pytest.raises(Unsupported, match="mistral"):
            ModelShape.from_config(windowed)

"""Fields of the wrong form: each is refused by its name, none is passed over or crashes."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.checks import LARGEST
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.errors import InvalidArgument, KvlabError

BASE: dict[str, Any] = {
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 64,
}
MAMBA = {"layers_block_type": ["mamba"] * 4, "mamba_d_state": 16}
DEEPSEEK = {
    "model_type": "deepseek_v4",
    "head_dim": 64,
    "layer_types": ["heavily_compressed_attention"] * 4,
}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"multi_query": "False"}, "multi_query='False': must be true or false"),
    ({"use_cla": "yes"}, "use_cla='yes': must be true or false"),
    ({"use_sliding_window": "false", "sliding_window": 8}, "use_sliding_window='false'"),
    ({"layer_types": "full_attention"}, "layer_types='full_attention': must be a list"),
    ({"hybrid_override_pattern": "MX*-"}, "hybrid_override_pattern='MX"),
    ({"hybrid_override_pattern": 3}, "hybrid_override_pattern=3: must be a text of the letters"),
    ({"attn_type_list": [0, 1, 2, 1]}, "attn_type_list=.*must be a list of 0 and 1"),
    ({"is_sliding": [[1]]}, "is_sliding=.*must be a list of 0 and 1"),
    ({"attn_layer_indices": [[1]]}, "attn_layer_indices=.*must be a whole number of 0 or more"),
    ({"full_attn_idxs": 2}, "full_attn_idxs=2: must be a list"),
    ({"attention_types": [1]}, "attention_types=.*must hold pairs"),
    ({"attention_types": [[["global"], 10**12]]}, "must name each of the 4 layers"),
    ({"linear_attn_config": {"full_attn_layers": ["x"]}}, r"linear_attn_config\.full_attn_layers"),
    ({"linear_attn_config": 7}, "linear_attn_config=7: must be an object"),
    ({"block_configs": [1]}, "block_configs=.*must hold an object for each layer"),
    ({"block_configs": [{"attention": 5}]}, "block_configs=.*must hold an object for each layer"),
    ({"num_key_value_heads_per_layer": [2, 2]}, "_per_layer=.*must have one entry for each layer"),
    ({"per_layer_config": [1]}, "per_layer_config=.*must hold an object for each layer"),
    ({"per_layer_config": 1}, "per_layer_config=1: must be an object or a list"),
    ({"loop_num_passes": 10**12}, "loop_num_passes=.*must be 10,000 layers or fewer"),
    ({"n_recurrent_loops": 2, "n_recurrent_layers": "x"}, "n_recurrent_layers='x'"),
    ({"loop_num_passes": 2, "loop_layer_index_end": 9}, "must begin a loop inside the 4 layers"),
    ({"num_nextn_predict_layers": 10**12}, "num_nextn_predict_layers=.*10,000 layers or fewer"),
    ({"model_type": "llama4_text", "no_rope_layers": 1}, "no_rope_layers=1: must be a list"),
    (MAMBA | {"mamba_expand": "8k"}, "mamba_expand='8k': must be a number above 0"),
    (MAMBA | {"mamba_expand": math.nan}, "mamba_expand=nan: must be a number above 0"),
    (MAMBA | {"mamba_expand": -1}, "mamba_expand=-1: must be a number above 0"),
    (DEEPSEEK | {"compress_rates": 4}, "compress_rates=4: must be an object"),
    (DEEPSEEK | {"compress_rates": {}, "layer_types": 1}, "layer_types=1: must be a list"),
    (DEEPSEEK | {"compress_rates": {"a": 1}}, "must give a rate for heavily_compressed"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_a_field_of_the_wrong_form_is_refused_by_its_name(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        read_model(BASE | fields, include_mtp=True)


KEYS = sorted({key for fields, _ in WRONG for key in fields} | set(BASE) | {"attn_config"})
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))
JUNK = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner)
)


@given(st.sampled_from(KEYS), JUNK)
def test_whatever_a_field_holds_the_answer_is_a_size_or_one_line(key: str, value: Any) -> None:
    try:
        sized = size_request(read_model(BASE | {key: value}), context=100)
    except KvlabError as error:
        assert "\n" not in str(error)
    else:
        assert sized.request_bytes >= 0


def test_a_count_beyond_all_reason_is_refused_in_a_short_line() -> None:
    model = read_model(BASE)
    assert size_request(model, context=LARGEST).kv_bytes == 256 * LARGEST
    for context in (LARGEST + 1, 10**5000):
        with pytest.raises(InvalidArgument, match=r"context='a huge number': must be 10\^40"):
            size_request(model, context=context)


def test_a_config_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{"num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 8}', "utf-8-sig"
    )
    assert read_model(path).elements_per_token == 16


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero on this system")
def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(KvlabError, match="is larger than 8 MiB"):
        read_model(Path("/dev/zero"))

"""Bad input: every fault is one sentence that names the argument, the value and the rule."""

from pathlib import Path
from typing import Any

import pytest

from kvlab.arithmetic.dtypes import cache_dtype, with_scales
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.errors import InvalidArgument, KvlabError

GOOD: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 512,
}


def without(field: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != field}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, r"config\.num_hidden_layers=None: is missing"),
        (without("num_hidden_layers"), r"config\.num_hidden_layers=None: is missing"),
        (without("hidden_size"), r"config\.hidden_size=None: is missing"),
        (
            {"num_hidden_layers": 2, "hidden_size": 64},
            r"config\.num_attention_heads=None: is missing",
        ),
        (GOOD | {"num_hidden_layers": 0}, r"config\.num_hidden_layers=0: must be a whole number"),
        (GOOD | {"num_hidden_layers": -1}, r"config\.num_hidden_layers=-1"),
        (GOOD | {"num_hidden_layers": 2.5}, r"config\.num_hidden_layers=2\.5"),
        (GOOD | {"num_hidden_layers": float("nan")}, r"config\.num_hidden_layers=nan"),
        (GOOD | {"num_hidden_layers": 10**12}, r"must be 10,000 layers or fewer"),
        (GOOD | {"num_hidden_layers": "4"}, r"config\.num_hidden_layers='4'"),
        (GOOD | {"num_key_value_heads": 0}, r"config\.num_key_value_heads=0"),
        (GOOD | {"num_key_value_heads": 3}, r"num_key_value_heads=3: must divide the 8 query"),
        (GOOD | {"head_dim": -64}, r"config\.head_dim=-64"),
        (GOOD | {"hidden_size": 515}, r"hidden_size=515: must be a multiple of the 8 heads"),
        (GOOD | {"sliding_window": -5}, r"config\.sliding_window=-5"),
        (GOOD | {"layer_types": ["full_attention"]}, r"must name each of the 4 layers"),
        (GOOD | {"kv_lora_rank": 512}, r"qk_rope_head_dim=None: is missing: a latent"),
        (
            GOOD | {"kv_lora_rank": 512, "model_type": "deepseek_v3"},
            r"qk_rope_head_dim=None: is missing",
        ),
        ({"text_config": GOOD | {"num_hidden_layers": 0}}, r"text_config\.num_hidden_layers=0"),
    ],
)
def test_a_bad_config_is_answered_with_its_field(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        read_model(config)


@pytest.mark.parametrize("config", [[GOOD], None, 7, 1.5, object()])
def test_what_is_no_config_at_all_is_refused(config: object) -> None:
    with pytest.raises(InvalidArgument, match="must be a config"):
        read_model(config)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1, 2]", "must hold a JSON object"),
        (b'{"num_hidden_layers": 4,', "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b"\xff\xfe\x00junk", "is not text in UTF-8"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"x" * 10 * 2**20, "is larger than 8 MiB"),
    ],
)
def test_a_bad_file_is_answered_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(KvlabError, match=message) as caught:
        read_model(path)
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


def test_a_file_or_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KvlabError, match=r"cannot read .*missing\.json"):
        read_model(tmp_path / "missing.json")
    with pytest.raises(InvalidArgument, match="no such model in the catalogue; close: "):
        read_model("llama-3.1-71b")


@pytest.mark.parametrize("value", [0, -1, 1.5, float("nan"), float("inf"), "8k", None, True])
@pytest.mark.parametrize("argument", ["context", "batch", "tp", "pp"])
def test_an_amount_that_is_no_whole_number_is_named(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=f"{argument}=.*whole number of 1 or more"):
        size_request(read_model(GOOD), **({"context": 8} | {argument: value}))


def test_ranks_that_cannot_be_are_named() -> None:
    model = read_model(GOOD)
    with pytest.raises(InvalidArgument, match="tp=3: must divide the 8 query heads"):
        size_request(model, context=8, tp=3)
    with pytest.raises(InvalidArgument, match="pp=5: must not exceed the 4 layers"):
        size_request(model, context=8, pp=5)
    with pytest.raises(InvalidArgument, match="source_length=-1"):
        size_request(model, context=8, source_length=-1)


@pytest.mark.parametrize("name", ["int3", "", None, 8, "bf-16"])
def test_an_unknown_element_type_is_named(name: object) -> None:
    with pytest.raises(InvalidArgument, match="must be one of fp32, bf16, fp16, fp8, int8"):
        cache_dtype(name)  # type: ignore[arg-type]


def test_a_type_with_scales_of_its_own_takes_no_others() -> None:
    with pytest.raises(InvalidArgument, match="has its own scales"):
        with_scales("q8_0", group_size=32)

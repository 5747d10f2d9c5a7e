"""The table of class defaults says what the configuration classes say."""

import dataclasses
import json

import pytest

from kvlab._paths import data_dir
from kvlab.arithmetic.config_fields import class_defaults

WORDS = {"llama", "mistral", "gemma3_text", "qwen3_moe", "falcon", "gpt_bigcode", "llama4_text"}


def test_the_table_names_its_source_and_day() -> None:
    text = (data_dir() / "config_defaults.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["source"].startswith("PyPI transformers 5.24.0") and document["as_of"]
    assert set(class_defaults()) >= WORDS


def test_known_defaults_of_kv_heads() -> None:
    found = {name: class_defaults()[name].get("num_key_value_heads") for name in WORDS}
    assert found["mistral"] == 8 and found["gemma3_text"] == 4 and found["llama"] is None
    assert class_defaults()["falcon"]["multi_query"] is True


@pytest.mark.slow
def test_the_table_equals_the_classes() -> None:
    transformers = pytest.importorskip("transformers")
    if transformers.__version__ != "5.24.0":
        pytest.skip(f"the table was made with 5.24.0, this is {transformers.__version__}")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    wrong = []
    for model_type, table in class_defaults().items():
        declared = {f.name: f.default for f in dataclasses.fields(CONFIG_MAPPING[model_type])}
        wrong += [(model_type, key) for key, value in table.items() if declared[key] != value]
    assert wrong == []

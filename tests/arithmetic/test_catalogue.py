"""The catalogue: names in any case, facts as published, faults named by row and field."""

import json
from pathlib import Path

import pytest

from kvlab.arithmetic.catalogue import find_model, load_models, model_shape
from kvlab.errors import InvalidArgument, KvlabError

ROW = {
    "id": "owner/Small-1B",
    "aliases": ["small"],
    "config": {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "hidden_size": 32,
        "intermediate_size": 64,
        "vocab_size": 100,
    },
    "sources": ["a page"],
    "as_of": "2026-11-01",
}


def written(folder: Path, *rows: object) -> Path:
    path = folder / "models.json"
    path.write_text(json.dumps({"models": rows}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "model_id"),
    [
        ("meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-70B"),
        ("llama-3.1-70b", "meta-llama/Llama-3.1-70B"),
        ("LLAMA-3.1-70B-INSTRUCT", "meta-llama/Llama-3.1-70B"),
        ("meta-llama/meta-llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        (" Llama 3.1 8B ", "meta-llama/Llama-3.1-8B"),
        ("SmolLM2", "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("smollm2-135m-instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
    ],
)
def test_models_go_by_id_or_short_name_in_any_case(name: str, model_id: str) -> None:
    assert find_model(name).id == model_id


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("llama-3.1-8b", (32, 32, 8, 128, 4096, 14336, 128256, False, 131072)),
        ("llama-3.1-70b", (80, 64, 8, 128, 8192, 28672, 128256, False, 131072)),
        ("smollm2", (30, 9, 3, 64, 576, 1536, 49152, True, 8192)),
    ],
)
def test_the_shapes_are_the_published_ones(name: str, shape: tuple[object, ...]) -> None:
    found = model_shape(name)
    assert (
        found.num_layers,
        found.num_heads,
        found.num_kv_heads,
        found.head_dim,
        found.hidden_size,
        found.intermediate_size,
        found.vocab_size,
        found.tied_embeddings,
        found.max_seq_len,
    ) == shape


def test_an_unknown_model_is_answered_with_the_closest_names() -> None:
    with pytest.raises(InvalidArgument, match=r"close: meta-llama/Llama-3\.1-70B"):
        find_model("llama-3.1-71b")
    with pytest.raises(InvalidArgument, match="it knows HuggingFaceTB"):
        find_model("\N{SNOWMAN}" * 500)


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(InvalidArgument, match="must be the name of a model"):
        find_model(name)


def test_a_model_folder_gives_its_own_shape(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(ROW["config"]), encoding="utf-8")
    assert model_shape(str(tmp_path)).num_layers == 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "", r"models.json row 2 \(\), id=''"),
        ("id", 7, r"row 2 \(7\), id=7"),
        ("aliases", "small", r"row 2 \(owner/Small-1B\), aliases='small'"),
        ("aliases", [1], "aliases=1: must be text"),
        ("config", {}, "config={}: must be an object with a model_type"),
        ("config", ROW["config"] | {"vocab_size": 0}, "row 2 .*, config.vocab_size=0"),
        ("config", ROW["config"] | {"num_key_value_heads": 3}, "row 2 .*, num_kv_heads=3"),
        ("sources", [], r"sources=\[\]"),
        ("as_of", "last week", "as_of='last week': must be a day"),
        ("colour", "red", "field='colour'"),
        ("parameters", -1, "row 2 .*, parameters=-1: must be a whole number"),
        ("parameters", "7B", "parameters='7B'"),
        ("confidence", "sure", "confidence='sure': is none of"),
    ],
)
def test_a_broken_row_is_named_with_its_field(
    tmp_path: Path, field: str, value: object, message: str
) -> None:
    good = ROW | {"id": "owner/Other", "aliases": []}
    with pytest.raises(InvalidArgument, match=message):
        load_models(written(tmp_path, good, ROW | {field: value}))


def test_a_model_of_another_architecture_may_stand_in_the_catalogue(tmp_path: Path) -> None:
    row = ROW | {"config": {"model_type": "deepseek_v3", "kv_lora_rank": 512}}
    assert load_models(written(tmp_path, row))[0].config["kv_lora_rank"] == 512


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"name='SMALL': is also a name of owner/Small-1B"):
        load_models(written(tmp_path, ROW, ROW | {"id": "other/Small-2B", "aliases": ["SMALL"]}))


@pytest.mark.parametrize("text", ["{", "[]", '{"models": []}', '{"models": [3]}', "\udcff"])
def test_a_file_that_is_no_catalogue_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "models.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(KvlabError) as caught:
        load_models(path)
    assert "\n" not in str(caught.value)


def test_every_row_says_where_it_is_from_and_when() -> None:
    rows = load_models()
    assert len(rows) >= 3
    assert all(row.sources and row.as_of.year >= 2026 for row in rows)

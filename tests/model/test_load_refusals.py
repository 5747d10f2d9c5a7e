"""Bad checkpoints and bad names: each is one named error in one line, and no code is run."""

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_folder import INDEX, Q_PROJ, WEIGHTS, edit_json, edit_weights, shard, write_folder
from tiny_gguf import write_gguf

from kvlab.errors import (
    InvalidArgument,
    KvlabError,
    ModelUnavailable,
    NotVerified,
    UnsafeCheckpoint,
    Unsupported,
)
from kvlab.model.load import load_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a tiny Llama, with a space and an accent in its name."""
    return write_folder(tmp_path / "mein Modell é")


class Bomb:
    """An object whose unpickling would raise in this test's process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (eval, ("1 / 0",))


def _refused(name: object, error: type[KvlabError], *words: str) -> None:
    with pytest.raises(error) as caught:
        load_model(name, device="cpu")  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert all(word in text for word in words), text


@pytest.mark.parametrize("suffix", [".bin", ".pt", ".pth", ".ckpt", ".PKL"])
def test_a_pickle_is_refused_unread(folder: Path, suffix: str) -> None:
    (folder / WEIGHTS).unlink()
    path = folder / f"model{suffix}"
    path.write_bytes(pickle.dumps(Bomb()))
    _refused(folder, UnsafeCheckpoint, path.name, "pickle")
    _refused(path, UnsafeCheckpoint, path.name, "pickle")


def test_a_pickle_named_safetensors_is_refused_unread(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(pickle.dumps(Bomb()))
    _refused(folder, NotVerified, WEIGHTS)


def test_remote_code_is_refused(folder: Path) -> None:
    edit_json(folder / "config.json", auto_map={"AutoModel": "evil.Model"}, model_type="evil")
    _refused(folder, UnsafeCheckpoint, "auto_map")


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_truncated_file_is_named(folder: Path, keep: int) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:keep])
    _refused(folder, NotVerified, WEIGHTS, "not a whole safetensors file")


def test_a_truncated_or_missing_shard_is_named(folder: Path) -> None:
    shards = shard(folder)
    content = shards[1].read_bytes()
    shards[1].write_bytes(content[:-4])
    _refused(folder, NotVerified, shards[1].name)
    shards[1].unlink()
    _refused(folder, NotVerified, shards[1].name, "missing")


@pytest.mark.parametrize(
    "name", ["../model.safetensors", "/etc/passwd", "x.bin", "a/b.safetensors"]
)
def test_an_index_may_not_point_elsewhere(folder: Path, name: str) -> None:
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": name}}), encoding="utf-8")
    _refused(folder, UnsafeCheckpoint, name)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": []}'])
def test_a_spoilt_index_is_named(folder: Path, text: str) -> None:
    (folder / INDEX).write_text(text, encoding="utf-8")
    _refused(folder, InvalidArgument, INDEX)


def test_several_files_without_an_index_are_refused(folder: Path) -> None:
    shard(folder)
    (folder / INDEX).unlink()
    _refused(folder, InvalidArgument, "2 safetensors files")


def test_a_missing_tensor_is_named(folder: Path) -> None:
    edit_weights(folder, lambda weights: weights.pop(Q_PROJ))
    _refused(folder, InvalidArgument, Q_PROJ)


def test_a_tensor_of_another_shape_is_named(folder: Path) -> None:
    edit_weights(folder, lambda weights: weights.update({Q_PROJ: torch.zeros(3, 5)}))
    _refused(folder, InvalidArgument, Q_PROJ, "(64, 64)", "(3, 5)")


def test_a_tensor_without_a_place_is_named(folder: Path) -> None:
    name = "model.layers.0.self_attn.q_norm.weight"
    edit_weights(folder, lambda weights: weights.update({name: torch.ones(16)}))
    _refused(folder, Unsupported, name)


def test_packed_weights_are_refused(folder: Path) -> None:
    packed = {Q_PROJ: torch.zeros(64, 64, dtype=torch.int8)}
    edit_weights(folder, lambda weights: weights.update(packed))
    _refused(folder, Unsupported, Q_PROJ, "packed")


def test_heads_that_kv_heads_do_not_divide_are_refused(folder: Path) -> None:
    edit_json(folder / "config.json", num_key_value_heads=3)
    _refused(folder, InvalidArgument, "num_heads=4", "num_kv_heads=3")


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_spoilt_config_is_named(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    _refused(folder, InvalidArgument, "config.json")


def test_a_folder_without_its_parts_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    _refused(folder, NotVerified, "tokenizer.json")
    (folder / "tokenizer.json").unlink()
    _refused(folder, Unsupported, "tokenizer.json")
    (folder / WEIGHTS).unlink()
    _refused(folder, InvalidArgument, "no *.safetensors")
    shutil.rmtree(folder)
    folder.mkdir()
    _refused(folder, InvalidArgument, "no *.safetensors")


def test_a_gguf_with_another_hash_is_refused(tmp_path: Path) -> None:
    _refused(write_gguf(tmp_path / "mine.gguf"), NotVerified, "mine.gguf")


@pytest.mark.parametrize(
    "name",
    ["", "  ", "no-such-model", "./gone", "/no/such/folder", "a\x00b", "x" * 5000, "~nobody"],
)
def test_an_unknown_name_is_named(name: str) -> None:
    _refused(name, InvalidArgument, "name_or_path=")


@pytest.mark.parametrize("name", [None, 7, b"smollm2", ["tiny"]])
def test_a_name_must_be_text(name: object) -> None:
    _refused(name, InvalidArgument, "must be a name or a folder")


def test_a_file_that_is_no_folder_is_refused(folder: Path) -> None:
    _refused(folder / WEIGHTS, InvalidArgument, "give the model's folder")


def test_bad_text_and_ids_are_refused(folder: Path) -> None:
    loaded = load_model(folder, device="cpu")
    for text in ("", None, "\ud800"):
        with pytest.raises(InvalidArgument, match="text="):
            loaded.encode(text)  # type: ignore[arg-type]
    for ids in ([-1], [10**9]):
        with pytest.raises(InvalidArgument, match="ids="):
            loaded.decode(ids)


@pytest.mark.parametrize("found", ["x", 2.0, -1, [2, "x"]])
def test_an_end_token_that_is_no_id_is_named(folder: Path, found: object) -> None:
    edit_json(folder / "config.json", eos_token_id=found)
    _refused(folder, InvalidArgument, "eos_token_id=")


def test_layers_that_the_file_lacks_are_refused_before_a_model_is_built(folder: Path) -> None:
    edit_json(folder / "config.json", num_hidden_layers=10**9)
    _refused(folder, InvalidArgument, "num_hidden_layers=1000000000", "model.layers.999999999.*")


def test_a_json_file_nested_without_end_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000, encoding="utf-8")
    _refused(folder, InvalidArgument, "config.json", "is not a JSON file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_the_place_of_the_weights_is_not_waited_for(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    os.mkfifo(folder / WEIGHTS)
    _refused(folder, InvalidArgument, "holds no *.safetensors file")


def test_too_little_memory_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise RuntimeError("unable to mmap 316736 bytes: Cannot allocate memory (12)")

    monkeypatch.setattr("safetensors.safe_open", refuse)
    _refused(folder, ModelUnavailable, WEIGHTS, "not enough memory", "KiB")

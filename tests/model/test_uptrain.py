"""Uptraining: begins with pooled heads, goes on after a stop with equal bytes, says what it did."""

import json
from pathlib import Path

import pytest
import torch

from kvlab._paths import data_dir
from kvlab.cli import run
from kvlab.errors import InvalidArgument
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.pool_heads import pool_kv_heads
from kvlab.model.retrieval import recall
from kvlab.model.train import train
from kvlab.model.train_loop import PROBE_SEED, PROBE_SEQUENCES
from kvlab.model.train_plan import TrainSettings
from kvlab.model.train_state import TrainState
from kvlab.model.uptrain import sha256_of, uptrain

LENGTHS = (256,)
STEPS = 6
SOURCE = TrainSettings(
    num_kv_heads=4, num_heads=4, steps=2, hidden_size=16, intermediate_size=16, batch_tokens=64
)


class Stopped(Exception):
    """Stands for the end of a run that nobody announced."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """Return a small model of the trainer's, four KV heads."""
    folder = tmp_path_factory.mktemp("source")
    train(SOURCE, folder, lengths=LENGTHS)
    return load_model(folder, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def whole(source: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an uptraining that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    uptrain(source, folder, num_kv_heads=2, steps=STEPS, lengths=LENGTHS)
    return folder


def log_of(folder: Path) -> dict:
    """Return the log of a finished run."""
    return json.loads((folder / "training_log.json").read_text(encoding="utf-8"))


def test_an_uptraining_that_stopped_goes_on_to_the_very_same_bytes(
    source: LoadedModel, whole: Path, tmp_path: Path
) -> None:
    def stop(state: TrainState) -> None:
        if state.step == 4:
            raise Stopped

    sizes = {"num_kv_heads": 2, "steps": STEPS, "checkpoint_every": 3, "lengths": LENGTHS}
    with pytest.raises(Stopped):
        uptrain(source, tmp_path, watch=stop, **sizes)
    assert TrainState.load(tmp_path).step == 3
    uptrain(source, tmp_path, **sizes)
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()
    assert log_of(tmp_path)["log"] == log_of(whole)["log"]


def test_the_result_loads_with_fewer_kv_heads_and_all_else_alike(
    source: LoadedModel, whole: Path
) -> None:
    config = load_model(whole, device="cpu").model.config
    assert config == pool_kv_heads(source.model, 2).config


def test_the_source_is_not_changed_by_it(source: LoadedModel, whole: Path) -> None:
    fresh = load_model(source.source, device="cpu", dtype="float32").model.state_dict()
    assert not source.model.training and log_of(whole)["log"]
    stored = sha256_of(source.source)
    assert log_of(whole)["settings"]["pooled_from"] == stored
    assert all(torch.equal(v, fresh[k]) for k, v in source.model.state_dict().items())


def test_the_first_probe_is_the_pooled_model_before_any_step(
    source: LoadedModel, whole: Path
) -> None:
    rows = log_of(whole)["log"]
    assert [row["step"] for row in rows if "probe" in row] == [0, 5]
    pooled = pool_kv_heads(source.model, 2)
    found = recall(pooled, num_sequences=PROBE_SEQUENCES, seed=PROBE_SEED)
    assert rows[0]["probe"] == round(found, 4)


def test_the_result_tells_the_source_and_what_it_recalled(source: LoadedModel, whole: Path) -> None:
    result = log_of(whole)["result"]
    assert result["source"] == source.name and result["source_kv_heads"] == 4
    for told in ("source_recall", "pooled_recall"):
        assert list(result[told]) == ["256", "hard"]
    assert result["recall"].keys() == {"256"} and result["hard"]["num_facts"] == 128


def test_a_checkpoint_of_another_source_is_refused(source: LoadedModel, tmp_path: Path) -> None:
    other = tmp_path / "other"
    train(TrainSettings(**{**SOURCE.to_dict(), "seed": 5}), other, lengths=LENGTHS)
    folder = tmp_path / "run"
    settings = {"num_kv_heads": 2, "steps": 9, "checkpoint_every": 1, "lengths": LENGTHS}

    def stop(state: TrainState) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        uptrain(source, folder, watch=stop, **settings)
    with pytest.raises(InvalidArgument, match="pooled_from="):
        uptrain(load_model(other, device="cpu"), folder, **settings)


def test_a_model_of_another_language_is_refused(
    source: LoadedModel, tmp_path: Path, make_llama: object
) -> None:
    stranger = LoadedModel(
        make_llama(), source.tokenizer, "x", source.device, source.dtype, source.source
    )
    with pytest.raises(InvalidArgument, match="train-tiny"):
        uptrain(stranger, tmp_path, num_kv_heads=1, steps=1)


def test_the_command_says_in_one_line_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["uptrain", "--model", "tiny", "--kv-heads", "3", "--out", str(tmp_path / "out")]
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert "--kv-heads=3" in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_out_that_is_no_new_folder_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvlab.model.uptrain.measured_recall", None)  # would fail if called
    file = tmp_path / "a-file"
    file.write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    cases = {
        file: "is not a folder",
        file / "below": "a-file is not a folder",
        tmp_path / "full": "holds other files",
        data_dir() / "tiny": "holds a model already",
    }
    for out, rule in cases.items():
        assert run(["uptrain", "--model", "tiny-mha", "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("kvlab: --out=") and rule in error and error.count("\n") == 1
    assert file.read_text() == "mine"

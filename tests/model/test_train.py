"""The trainer: settings, curriculum, checkpoints, and going on after a kill with equal bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from kvlab.cli import run
from kvlab.errors import InvalidArgument, NotVerified
from kvlab.model.load import load_model
from kvlab.model.train import open_run, train
from kvlab.model.train_loop import train_step
from kvlab.model.train_plan import (
    TrainSettings,
)
from kvlab.model.train_state import CHECKPOINT, TrainState

SIZES = {"hidden_size": 8, "intermediate_size": 8, "batch_tokens": 64, "num_heads": 2}
TOY = TrainSettings(num_kv_heads=1, steps=12, pass_recall=0.001, **SIZES)
LENGTHS = (256,)


class Stopped(Exception):
    """Stands for the end of a run that nobody announced."""


def stop_at(step: int):
    """Return a watcher that ends the run after `step` steps."""

    def watch(state: TrainState) -> None:
        if state.step == step:
            raise Stopped

    return watch


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(TOY, folder, lengths=LENGTHS)
    return folder


def weights(folder: Path) -> bytes:
    """Return the bytes of the trained model."""
    return (folder / "model.safetensors").read_bytes()


def log_rows(folder: Path) -> list[dict]:
    """Return the logged steps."""
    return json.loads((folder / "training_log.json").read_text(encoding="utf-8"))["log"]


@pytest.mark.parametrize(("every", "step"), [(1, 5), (4, 7), (5, 10), (20, 3)])
def test_a_run_that_stopped_goes_on_to_the_very_same_weights(
    whole: Path, tmp_path: Path, every: int, step: int
) -> None:
    with pytest.raises(Stopped):
        train(TOY, tmp_path, checkpoint_every=every, watch=stop_at(step), lengths=LENGTHS)
    assert (tmp_path / CHECKPOINT).exists() == (every <= step)
    train(TOY, tmp_path, checkpoint_every=every, lengths=LENGTHS)
    assert weights(tmp_path) == weights(whole)
    assert log_rows(tmp_path) == log_rows(whole)


def test_a_run_that_was_killed_goes_on_to_the_very_same_weights(
    whole: Path, tmp_path: Path
) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from kvlab.model.train import train\n"
        "from kvlab.model.train_plan import TrainSettings\n"
        f"train({TOY!r}, Path(sys.argv[1]), checkpoint_every=1, watch=lambda s: time.sleep(0.3))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    try:
        wait_for(tmp_path / CHECKPOINT, process)
    finally:
        os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()
    assert not (tmp_path / "model.safetensors").exists()
    assert 1 <= TrainState.load(tmp_path).step < TOY.steps
    train(TOY, tmp_path, lengths=LENGTHS)
    assert weights(tmp_path) == weights(whole)


def wait_for(path: Path, process: subprocess.Popen) -> None:
    """Return once the file is there; fail when the process ended without it."""
    while not path.exists():
        assert process.poll() is None, "the run ended before its first checkpoint"
        time.sleep(0.02)


def test_a_write_that_was_cut_off_leaves_the_checkpoint_before_it(tmp_path: Path) -> None:
    state = TrainState.new(TOY)
    state.save(tmp_path)
    (tmp_path / (CHECKPOINT + ".part")).write_bytes(b"half a file")
    assert TrainState.load(tmp_path).step == 0


def test_a_checkpoint_holds_numbers_and_json_alone(tmp_path: Path) -> None:
    state = TrainState.new(TOY)
    train_step(state)
    state.save(tmp_path)
    with safe_open(tmp_path / CHECKPOINT, framework="pt") as file:
        kinds = {name.split(".")[0] for name in file.keys()}  # noqa: SIM118
        assert json.loads(file.metadata()["progress"])["step"] == 1
    assert kinds == {"weights", "exp_avg", "exp_avg_sq"}


def test_a_finished_folder_holds_a_model_that_loads_and_no_checkpoint(whole: Path) -> None:
    assert {path.name for path in whole.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "training_log.json",
    }
    loaded = load_model(whole, device="cpu")
    assert loaded.model.config == TOY.model_config()
    assert loaded.encode("where Ana?").tolist() == [[1, 3, 64 + 7]]


def test_the_log_tells_settings_result_and_each_pass_of_the_curriculum(whole: Path) -> None:
    log = json.loads((whole / "training_log.json").read_text(encoding="utf-8"))
    assert TrainSettings.from_dict(log["settings"]) == TOY
    assert list(log["result"]["recall"]) == ["256"]
    assert log["result"]["stages_passed"] == sum(row["passed"] for row in log["log"])
    assert log["log"][-1]["step"] == TOY.steps - 1


def test_other_threads_do_not_stay_set(whole: Path, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    with pytest.raises(Stopped):
        train(TOY, tmp_path, watch=stop_at(1))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("change", [{"seed": 1}, {"steps": 13}, {"num_kv_heads": 2}])
def test_a_checkpoint_of_other_settings_is_refused_by_name(
    tmp_path: Path, change: dict[str, int]
) -> None:
    TrainState.new(TOY).save(tmp_path)
    other = TrainSettings.from_dict(TOY.to_dict() | change)
    with pytest.raises(InvalidArgument) as caught:
        open_run(other, tmp_path)
    assert caught.value.argument == next(iter(change))


def test_a_finished_model_is_not_written_over(whole: Path) -> None:
    before = weights(whole)
    with pytest.raises(InvalidArgument, match="out="):
        train(TOY, whole, lengths=LENGTHS)
    assert weights(whole) == before


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="out="):
        train(TOY, path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="can't be written"):
        train(TOY, tmp_path / "file" / "folder")


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_checkpoint_is_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(NotVerified, match="delete it to start again"):
        open_run(TOY, tmp_path)


def test_the_loss_falls_when_the_same_facts_are_seen_again() -> None:
    settings = TrainSettings(1, num_heads=2, hidden_size=16, intermediate_size=16, batch_tokens=256)
    state = TrainState.new(settings)
    for _ in range(40):
        train_step(state)
    assert state.log[-1]["loss"] < state.log[0]["loss"]


def test_the_command_says_in_one_line_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train-tiny", "--kv-heads", "3", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "num_kv_heads=3" in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()

"""The bundled twins: alike but for their KV heads, as good as their logs and READMEs say."""

import json
from functools import cache

import pytest
import torch

from kvlab._paths import data_dir
from kvlab.errors import InvalidArgument
from kvlab.model.bundled import BUNDLED
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.retrieval import CHANCE, make_sequences, recall
from kvlab.model.train_curves import GROUPS, LEARNT, LEFT_CHANCE, collect_curves, load_curves
from kvlab.model.train_plan import TrainSettings
from kvlab.model.uptrain import sha256_of

TWINS = {"tiny-mha": 8, "tiny-gqa": 2, "tiny-mqa": 1}
NAMES = BUNDLED[1:]


@cache
def loaded(name: str) -> LoadedModel:
    """Return a bundled model on the CPU, in float32."""
    return load_model(name, device="cpu", dtype="float32")


def read(name: str, file: str) -> dict:
    """Return a JSON file of a bundled folder."""
    return json.loads((data_dir() / name / file).read_text(encoding="utf-8"))


def settings_of(name: str) -> dict:
    """Return the settings that a bundled model was trained with."""
    return read(name, "training_log.json")["settings"]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_small_and_holds_no_pickle(name: str) -> None:
    files = {path.name: path.stat().st_size for path in (data_dir() / name).iterdir()}
    assert set(files) == {path.name for path in (data_dir() / "tiny").iterdir()}
    assert sum(files.values()) < 3_000_000


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_states_what_the_log_and_the_weights_say(name: str) -> None:
    readme = (data_dir() / name / "README.md").read_text(encoding="utf-8")
    log = read(name, "training_log.json")
    for length, share in log["result"]["recall"].items():
        assert f"| 32 | {int(length):,} | {share:.4f} |" in readme
    assert f"| 128 | 1,024 | {log['result']['hard']['recall']:.4f} |" in readme
    assert f"{log['result']['parameters']:,} parameters" in readme
    assert f"--kv-heads {log['settings']['num_kv_heads']} " in readme
    assert f"--seed {log['settings']['seed']} " in readme
    assert f"--steps {log['settings']['steps']} " in readme
    assert sha256_of(data_dir() / name) in readme
    assert loaded(name).num_parameters == log["result"]["parameters"]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_recalls_what_its_log_says(name: str) -> None:
    logged = read(name, "training_log.json")["result"]["recall"]["512"]
    assert recall(loaded(name).model, num_sequences=8) == pytest.approx(logged, abs=0.02)
    assert logged >= 0.98


def test_the_twins_differ_in_their_kv_heads_alone() -> None:
    configs = {name: read(name, "config.json") for name in TWINS}
    assert {name: config.pop("num_key_value_heads") for name, config in configs.items()} == TWINS
    settings = {name: settings_of(name) for name in TWINS}
    assert {name: s.pop("num_kv_heads") for name, s in settings.items()} == TWINS
    for found in (configs, settings):
        assert found["tiny-mha"] == found["tiny-gqa"] == found["tiny-mqa"]


def test_the_settings_in_a_log_make_the_model_in_the_folder() -> None:
    for name in NAMES:
        assert (
            TrainSettings.from_dict(settings_of(name)).model_config() == loaded(name).model.config
        )


def test_the_uptrained_model_comes_from_the_bundled_mha_twin() -> None:
    assert settings_of("tiny-gqa-uptrained")["pooled_from"] == sha256_of(data_dir() / "tiny-mha")
    assert loaded("tiny-gqa-uptrained").model.config == loaded("tiny-gqa").model.config
    result = read("tiny-gqa-uptrained", "training_log.json")["result"]
    mha = read("tiny-mha", "training_log.json")["result"]
    assert result["source_recall"] == mha["recall"] | {"hard": mha["hard"]["recall"]}
    assert result["pooled_recall"]["512"] < 0.5 < result["recall"]["512"]


def test_the_windowed_model_gives_the_logits_of_transformers() -> None:
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(data_dir() / "tiny-window", dtype=torch.float32)
    assert type(theirs).__name__ == "MinistralForCausalLM"
    ids = torch.from_numpy(make_sequences(2, seq_len=512, seed=4).input_ids)
    with torch.no_grad():
        ours = loaded("tiny-window").model(ids)
        torch.testing.assert_close(ours, theirs(ids).logits, atol=1e-3, rtol=1e-4)


def test_the_windowed_model_has_one_layer_of_64_tokens() -> None:
    config = loaded("tiny-window").model.config
    assert config.layer_windows == (64, None)
    assert config.num_kv_heads == loaded("tiny-gqa").model.config.num_kv_heads


@pytest.mark.parametrize("name", [*TWINS, "tiny-gqa-uptrained"])
def test_a_model_gives_the_logits_of_transformers(name: str) -> None:
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(data_dir() / name, dtype=torch.float32)
    ids = torch.from_numpy(make_sequences(1, seq_len=256, seed=4).input_ids)
    with torch.no_grad():
        ours = loaded(name).model(ids)
        torch.testing.assert_close(ours, theirs(ids).logits, atol=1e-3, rtol=1e-4)


# ---- curves -----------------------------------------------------------------------------------


def test_the_curves_of_the_bundled_models_are_those_of_their_logs() -> None:
    stored = {curve.model: curve for group in GROUPS for curve in load_curves(group) if curve.model}
    assert set(stored) == set(NAMES)
    for row in collect_curves(data_dir() / name for name in NAMES)["runs"]:
        curve = stored[row["model"]]
        assert [list(point) for point in curve.recall] == row["recall"]
        assert (curve.final, curve.notes) == (row["final"], row["notes"])


@pytest.mark.parametrize("num_kv_heads", TWINS.values())
def test_each_twin_has_curves_of_three_seeds_to_the_same_budget(num_kv_heads: int) -> None:
    for group in ("twins", "twins-slow"):
        curves = load_curves(group, num_kv_heads=num_kv_heads)
        assert [curve.seed for curve in curves] == [0, 1, 2]
        assert {curve.steps for curve in curves} == {settings_of("tiny-mha")["steps"]}
        assert all(curve.recall[0][0] == 0 for curve in curves)
        assert all(curve.recall[0][1] < 4 * CHANCE for curve in curves)


def test_without_filler_at_first_all_twins_learn_whatever_their_kv_heads() -> None:
    for curve in load_curves("twins"):
        assert curve.first_step(LEFT_CHANCE) < curve.first_step(LEARNT)
        assert curve.final["512"] >= 0.99


def test_pooling_and_uptraining_beat_as_many_steps_from_nothing() -> None:
    (uptrained,) = load_curves("uptrain", num_kv_heads=2)
    (from_nothing,) = load_curves("twins-short", num_kv_heads=2)
    assert uptrained.steps == from_nothing.steps
    assert uptrained.final["512"] > from_nothing.final["512"] + 0.3


def test_a_run_that_nobody_made_has_no_curve() -> None:
    with pytest.raises(InvalidArgument, match="num_kv_heads=3"):
        load_curves("twins", num_kv_heads=3)
    with pytest.raises(InvalidArgument, match="group='soup'"):
        load_curves("soup")

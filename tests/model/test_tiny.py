"""The bundled tiny Llama: its recall, its files, and the same answers in transformers."""

import json
from dataclasses import replace

import pytest
import torch

from kvlab._paths import data_dir
from kvlab.model.load import load_model
from kvlab.model.retrieval import make_sequences, recall, render
from kvlab.model.train_loop import train_step
from kvlab.model.train_plan import TrainSettings
from kvlab.model.train_state import TrainState

TINY = data_dir() / "tiny"


def test_the_bundled_model_recalls_99_of_100_facts_at_512_tokens() -> None:
    model = load_model("tiny", device="cpu").model
    assert recall(model, num_sequences=16, seed=77) >= 0.99


def test_the_bundled_model_recalls_with_a_cache_too() -> None:
    model = load_model("tiny", device="cpu").model
    assert recall(model, num_sequences=4, seed=78, cache="growing") >= 0.97


def test_the_bundled_model_answers_a_text_that_a_person_types() -> None:
    loaded = load_model("tiny", device="cpu")
    ids = loaded.encode("calm road Ana: Oslo. the river Emil: Lima. old bird. Where Ana?")
    assert loaded.decode(loaded.model(ids)[0, -1:].argmax(-1)) == "oslo"


def test_the_bundled_model_gives_the_logits_of_transformers() -> None:
    from transformers import AutoTokenizer, LlamaForCausalLM

    batch = make_sequences(2, seq_len=512, seed=4)
    theirs = LlamaForCausalLM.from_pretrained(TINY, dtype=torch.float32)
    ids = torch.from_numpy(batch.input_ids)
    with torch.no_grad():
        torch.testing.assert_close(
            load_model("tiny", device="cpu", dtype="float32").model(ids),
            theirs(ids).logits,
            atol=1e-3,
            rtol=1e-4,
        )
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    text = render(batch.input_ids[0])
    assert tokenizer(text).input_ids == batch.input_ids[0].tolist()
    assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True).startswith(
        text.split()[0].strip(".:?").lower()
    )


def test_the_bundled_folder_is_small_and_holds_no_pickle() -> None:
    files = {path.name: path.stat().st_size for path in TINY.iterdir()}
    assert set(files) == {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "training_log.json",
    }
    assert sum(files.values()) < 4_000_000
    shape = load_model("tiny", device="cpu").model.config
    assert shape == replace(shape, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=32)


def test_the_bundled_log_states_the_recall_that_the_readme_states() -> None:
    folder = data_dir() / "tiny"
    log = json.loads((folder / "training_log.json").read_text(encoding="utf-8"))
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert log["result"]["recall"]["512"] >= 0.99
    for length, share in log["result"]["recall"].items():
        assert f"| {int(length):,} | {share:.4f} |" in readme
    assert f"{log['result']['parameters']:,} parameters" in readme
    settings = TrainSettings.from_dict(log["settings"])
    assert settings == TrainSettings(2, steps=settings.steps, seed=settings.seed)


def test_the_bundled_log_is_still_the_log_of_its_settings() -> None:
    log = json.loads((TINY / "training_log.json").read_text(encoding="utf-8"))
    state = TrainState.new(TrainSettings.from_dict(log["settings"]))
    for _ in range(11):
        train_step(state)
    for row, logged in zip(state.log, log["log"][:2], strict=True):
        assert row.keys() == logged.keys() and row["step"] == logged["step"]
        for name, value in logged.items():
            assert row[name] == pytest.approx(value, rel=0.01, abs=0.01)

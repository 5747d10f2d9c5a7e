"""Train a tiny Llama on the retrieval language, from nothing to a folder that loads anywhere.

The result is a folder in Hugging Face's format with the log of its training. A run that was
killed goes on from its last checkpoint and ends with the same weights.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.retrieval import recall
from kvlab.model.retrieval_tokenizer import save_tokenizer
from kvlab.model.retrieval_words import BOS_ID, PAD_ID
from kvlab.model.train_loop import Watch, run_steps
from kvlab.model.train_plan import TrainSettings
from kvlab.model.train_recipes import Recipe
from kvlab.model.train_state import (
    CHECKPOINT,
    TrainState,
    check_same_run,
    write_safetensors,
    write_text,
)

LOG_FILE = "training_log.json"
MEASURED_SEQUENCES = 64


def train(
    settings: TrainSettings,
    folder: Path,
    *,
    checkpoint_every: int = 25,
    lengths: tuple[int, ...] | None = None,
    watch: Watch | None = None,
    first: Llama | None = None,
    notes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train, or go on where a killed run stopped, and return the log's `result`.

    Writes config.json, model.safetensors, the tokenizer and training_log.json to `folder`, and
    removes the checkpoint at the end. `lengths` are the recipe's if left out. A new run begins
    with the weights of `first` where it is given; `notes` are added to the result. Raises
    `InvalidArgument` for a folder that holds a finished model or a checkpoint of other settings.
    """
    whole_number("checkpoint_every", checkpoint_every)
    try:
        state = open_run(settings, folder, first)
        run_steps(state, folder, checkpoint_every=checkpoint_every, watch=watch)
        state.save(folder)
        result = measure(state, lengths) | dict(notes or {})
        export(state, folder, result)
        (folder / CHECKPOINT).unlink()
    except (OSError, SafetensorError) as error:
        raise InvalidArgument("out", str(folder), f"can't be written ({error})") from None
    return result


def check_out(folder: Path) -> None:
    """Refuse a folder in which no run can begin or go on; nothing is written yet.

    >>> check_out(Path(__file__))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: out=...: is not a folder
    """
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        below = f"can't be written: {there.name} is not a folder"
        rule = "is not a folder" if there == folder else below
        raise InvalidArgument("out", str(folder), rule)
    if (folder / CHECKPOINT).is_file():
        return
    if (folder / "model.safetensors").exists():
        raise InvalidArgument("out", str(folder), "holds a model already; give another folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise InvalidArgument("out", str(folder), "holds other files; give a new folder")


def open_run(settings: TrainSettings, folder: Path, first: Llama | None = None) -> TrainState:
    """Return a new run, or the one whose checkpoint lies in `folder`."""
    check_out(folder)
    if (folder / CHECKPOINT).is_file():
        state = TrainState.load(folder)
        check_same_run(state, settings, folder)
        return state
    folder.mkdir(parents=True, exist_ok=True)
    return TrainState.new(settings, first)


def measured_recall(model: Llama, plan: Recipe, lengths: tuple[int, ...]) -> dict[str, Any]:
    """Return recall per length on fresh sequences of 32 facts, and on the recipe's harder task."""
    found = {
        str(length): round(recall(model, seq_len=length, num_sequences=MEASURED_SEQUENCES), 4)
        for length in lengths
    }
    if (task := plan.hard) is None:
        return {"recall": found}
    sizes = {"seq_len": task.seq_len, "num_facts": task.num_facts}
    hard = recall(model, **sizes, num_sequences=MEASURED_SEQUENCES // 4)
    return {"recall": found, "hard": {**sizes, "recall": round(hard, 4)}}


def measure(state: TrainState, lengths: tuple[int, ...] | None = None) -> dict[str, Any]:
    """Return what the run came to: what it recalls, what it cost, how far it got."""
    plan = state.settings.plan
    return {
        **measured_recall(state.model.eval(), plan, plan.lengths if lengths is None else lengths),
        "num_facts": 32,
        "num_sequences": MEASURED_SEQUENCES,
        "parameters": sum(parameter.numel() for parameter in state.model.parameters()),
        "stages_passed": state.stage_index,
        "num_stages": len(plan.stages),
        "training_seconds": round(state.seconds, 1),
        "torch": str(torch.__version__),
    }


def export(state: TrainState, folder: Path, result: Mapping[str, Any]) -> None:
    """Write the model in Hugging Face's format, with its tokenizer and its log."""
    save_tokenizer(folder, state.settings.model_config().max_seq_len)
    config = json.dumps(hf_config(state.model), indent=2)
    write_text(folder / "config.json", config + "\n")
    write_text(folder / LOG_FILE, _log_text(state, result))
    write_safetensors(folder / "model.safetensors", state.model.state_dict(), {"format": "pt"})


def hf_config(model: Llama) -> dict[str, Any]:
    """Return the `config.json` of a model of this trainer, in Hugging Face's names."""
    config = model.config
    kind = config.hf_model_type
    return {
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "model_type": kind,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": 10000.0,
        "max_position_embeddings": config.max_seq_len,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": BOS_ID,
        "eos_token_id": None,
        "pad_token_id": PAD_ID,
        "torch_dtype": "float32",
        **_hf_windows(config),
    }


def _hf_windows(config: LlamaConfig) -> dict[str, Any]:
    if config.sliding_window is None:
        return {}
    kinds = ("full_attention" if w is None else "sliding_attention" for w in config.layer_windows)
    return {"sliding_window": config.sliding_window, "layer_types": list(kinds)}


def _log_text(state: TrainState, result: Mapping[str, Any]) -> str:
    """Return the log as JSON with one step to a line, so that it can be read and compared."""
    rows = ",\n    ".join(json.dumps(row) for row in state.log)
    head = {"settings": state.settings.to_dict(), "result": dict(result)}
    return json.dumps(head, indent=2).removesuffix("\n}") + f',\n  "log": [\n    {rows}\n  ]\n}}\n'

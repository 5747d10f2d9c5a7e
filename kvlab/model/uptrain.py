"""Fewer KV heads for a model that is trained already: pool them, then train a little longer.

The model must be one of this trainer's, for the batches are in the retrieval language. A run that
was killed goes on from its checkpoint, as `train` does.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvlab.errors import InvalidArgument
from kvlab.model.checkpoint import weight_files
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.pool_heads import pool_kv_heads
from kvlab.model.train import check_out, measured_recall, train
from kvlab.model.train_loop import Watch
from kvlab.model.train_plan import TrainSettings

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

SEED = 100
"""Not a seed of the twins': the uptraining sees sequences that the source has not seen."""


def uptrain(
    source: "LoadedModel",
    folder: Path,
    *,
    num_kv_heads: int,
    steps: int,
    seed: int = SEED,
    threads: int = 1,
    checkpoint_every: int = 25,
    lengths: tuple[int, ...] | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Pool `source`'s KV heads, train the result on the CPU, and return the log's `result`.

    Writes the same files as `train`. The result says what the source recalled and what was left
    right after pooling; the log's probes say what came back, and when. Raises `InvalidArgument`
    for a source that this trainer did not make and for a number of heads that does not divide
    the source's; both, and a folder that will not do, before anything is measured.
    """
    check_out(folder)
    pooled = pool_kv_heads(source.model, num_kv_heads).float().cpu()
    sizes = {"num_kv_heads": num_kv_heads, "steps": steps, "seed": seed, "threads": threads}
    settings = uptrain_settings(pooled.config, sha256_of(source.source), **sizes)
    notes = {
        "source": source.name,
        "source_kv_heads": source.model.config.num_kv_heads,
        "source_recall": _recall(source.model, settings, lengths),
        "pooled_recall": _recall(pooled, settings, lengths),
    }
    return train(
        settings,
        folder,
        checkpoint_every=checkpoint_every,
        lengths=lengths,
        watch=watch,
        first=pooled.train().requires_grad_(True),
        notes=notes,
    )


def uptrain_settings(pooled: LlamaConfig, pooled_from: str, **settings: int) -> TrainSettings:
    """Return the settings of an uptraining; refuse a model of a shape this trainer never makes."""
    made = TrainSettings(
        num_heads=pooled.num_heads,
        num_layers=pooled.num_layers,
        hidden_size=pooled.hidden_size,
        intermediate_size=pooled.intermediate_size,
        sliding_window=pooled.sliding_window,
        layer_types=pooled.layer_types,
        recipe="uptrain",
        pooled_from=pooled_from,
        **settings,
    )
    if made.model_config() != pooled:
        rule = "must be a model that `kvlab train-tiny` makes: its language is all we can train on"
        raise InvalidArgument("model", f"{pooled.vocab_size:,} words", rule)
    return made


def sha256_of(folder: Path) -> str:
    """Return the sha256 of a model's weights, all files in the order of their names."""
    digest = hashlib.sha256()
    for path in weight_files(folder):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _recall(
    model: Llama, settings: TrainSettings, lengths: tuple[int, ...] | None
) -> dict[str, Any]:
    plan = settings.plan
    found = measured_recall(model.eval(), plan, plan.lengths if lengths is None else lengths)
    return found["recall"] | {"hard": found["hard"]["recall"]}

"""`kvlab uptrain`: a trained tiny model with fewer KV heads, pooled and trained a little longer."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kvlab.cli_flags import in_flags

FLAGS = {
    "name_or_path": "--model",
    "model": "--model",
    "num_kv_heads": "--kv-heads",
    "steps": "--steps",
    "seed": "--seed",
    "out": "--out",
    "threads": "--threads",
    "checkpoint_every": "--checkpoint-every",
}


def uptrain(
    model: Annotated[str, typer.Option(help="A tiny model's name or folder.")] = "tiny-mha",
    kv_heads: Annotated[int, typer.Option(help="KV heads to be left; a divisor of its own.")] = 2,
    steps: Annotated[int, typer.Option(help="Training steps of 4,096 tokens.")] = 100,
    seed: Annotated[int, typer.Option(help="Draws the data.")] = 100,
    out: Annotated[Path | None, typer.Option(help="Folder; <model>-kv<N> if left out.")] = None,
    threads: Annotated[int, typer.Option(help="CPU threads; part of what fixes the result.")] = 1,
    checkpoint_every: Annotated[
        int, typer.Option(help="Steps from checkpoint to checkpoint.")
    ] = 25,
) -> None:
    """Pool a model's KV heads, then train on. Killed? Give the same command again: it goes on."""
    from kvlab.cli_train import Progress, print_result
    from kvlab.model.load import load_model
    from kvlab.model.uptrain import uptrain as run

    with in_flags(FLAGS):
        source = load_model(model, device="cpu", dtype="float32")
        folder = out or Path(f"{source.name}-kv{kv_heads}")
        result = run(
            source,
            folder,
            num_kv_heads=kv_heads,
            steps=steps,
            seed=seed,
            threads=threads,
            checkpoint_every=checkpoint_every,
            watch=Progress(steps).show,
        )
    print_result(result, folder)
    _print_before(result)


def _print_before(result: dict[str, Any]) -> None:
    """Print recall at 512 tokens of the source, right after pooling, and now."""
    before = (("source", "source_recall"), ("pooled", "pooled_recall"), ("now", "recall"))
    shares = "; ".join(f"{word} {result[key]['512']:.4f}" for word, key in before)
    print(f"recall at 512 tokens: {shares}")

"""`kvlab train-tiny`: train a tiny Llama on the retrieval language, on a CPU in minutes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kvlab.model.train_state import TrainState


def train_tiny(
    kv_heads: Annotated[int, typer.Option(help="KV heads: 4 is MHA here, 1 is MQA.")] = 2,
    heads: Annotated[int, typer.Option(help="Query heads; the hidden size is 128.")] = 4,
    steps: Annotated[int, typer.Option(help="Training steps of 4,096 tokens.")] = 1_200,
    seed: Annotated[int, typer.Option(help="Draws the first weights and the data.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder; tiny-kv<N> if left out.")] = None,
    recipe: Annotated[str, typer.Option(help="tiny, twins or twins-slow: what is shown.")] = "tiny",
    sliding_window: Annotated[
        int | None, typer.Option(help="Tokens seen by layers 0, 2, ...; the others see all.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(help="CPU threads; part of what fixes the result.")] = 1,
    checkpoint_every: Annotated[
        int, typer.Option(help="Steps from checkpoint to checkpoint.")
    ] = 25,
) -> None:
    """Train a tiny Llama from nothing. Killed? Give the same command again: it goes on."""
    from kvlab.model.device import choose_device
    from kvlab.model.train import train
    from kvlab.model.train_plan import TrainSettings

    settings = TrainSettings(
        num_kv_heads=kv_heads,
        num_heads=heads,
        steps=steps,
        seed=seed,
        threads=threads,
        device=str(choose_device(device)),
        recipe=recipe,
        **_windows(sliding_window),
    )
    folder = out or Path(f"tiny-kv{kv_heads}")
    watch = Progress(steps).show
    result = train(settings, folder, checkpoint_every=checkpoint_every, watch=watch)
    print_result(result, folder)


def _windows(sliding_window: int | None) -> dict[str, Any]:
    """Return the settings of a model of two layers, the first one windowed."""
    if sliding_window is None:
        return {}
    return {
        "sliding_window": sliding_window,
        "layer_types": ("sliding_attention", "full_attention"),
    }


class Progress:
    """A progress bar that says where the curriculum stands; it appears with the first step."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.bar: Any = None

    def show(self, state: "TrainState") -> None:
        """Move the bar to the state's step; a run that goes on starts where it stopped."""
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(total=self.steps, initial=state.step - 1, unit="step")
        stage = state.settings.plan.stages[state.stage_index]
        last = f"{state.recent[-1]:.3f}" if state.recent else "-"
        text = f"{stage.num_facts} facts in {stage.seq_len:,} tokens, recall {last}"
        self.bar.set_description(text, refresh=False)
        self.bar.update(state.step - self.bar.n)
        if state.step == self.steps:
            self.bar.close()
            print("measuring recall on fresh sequences", file=sys.stderr)


def print_result(result: dict[str, Any], folder: Path) -> None:
    """Print the recall per length as a table, and where the model lies."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Recall of {result['num_facts']} facts, on fresh sequences")
    table.add_column("tokens", justify="right")
    table.add_column("recall", justify="right")
    for length, share in result["recall"].items():
        table.add_row(f"{int(length):,}", f"{share:.4f}")
    console = Console()
    console.print(table)
    if "hard" in result:
        task = "{num_facts} facts in {seq_len:,} tokens: {recall:.4f}".format(**result["hard"])
        console.print(task, highlight=False)
    console.print(
        f"{result['parameters']:,} parameters, {result['training_seconds']:,.0f} s of training,"
        f" curriculum stage {result['stages_passed'] + 1} of {result['num_stages']}; in {folder}",
        highlight=False,
        soft_wrap=True,
    )

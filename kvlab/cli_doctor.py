"""`kvlab doctor`: say what this machine has for the course, and what to do about what it lacks."""

import json
from typing import Annotated

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check this machine: versions, device, weights, and what to do where something is missing."""
    from kvlab.doctor import doctor as examine

    report = examine()
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
        return
    from rich.console import Console

    Console().print(report)

"""`kvlab demo`: list the demos, or serve one full screen in a browser on this machine."""

import json
from importlib.util import find_spec
from typing import Annotated

import typer

from kvlab.errors import Unsupported


def demo(
    name: Annotated[str | None, typer.Argument(help="A demo of the list; none lists them.")] = None,
    port: Annotated[int, typer.Option(help="The port; 0 takes any that is free.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, open no window.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """Show one widget of the course full screen, for a room, until Ctrl+C."""
    from kvlab.demo.registry import find_demo

    if name is None:
        list_demos(as_json=as_json)
        return
    chosen = find_demo(name)
    if find_spec("tornado") is None:
        raise Unsupported("tornado is not installed: run `python -m pip install tornado`")
    from kvlab.demo.run import run_demo

    run_demo(chosen, port=port, browser=not no_browser)


def list_demos(*, as_json: bool) -> None:
    """Print every demo with its chapter, its minutes and what it makes plain."""
    from kvlab.demo.registry import DEMOS

    if as_json:
        keys = ("name", "chapter", "minutes", "title", "point")
        print(json.dumps([{key: getattr(one, key) for key in keys} for one in DEMOS], indent=2))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("demo", no_wrap=True)
    table.add_column("chapter")
    table.add_column("minutes", justify="right")
    table.add_column("it makes plain")
    for one in DEMOS:
        table.add_row(one.name, one.chapter, str(one.minutes), one.point)
    console = Console()
    console.print(table)
    console.print("kvlab demo NAME shows one. How to use them: chapters/instructors/README.md")

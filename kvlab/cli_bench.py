"""`kvlab bench`: our costs side by side with peers and with what the hardware allows."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kvlab.bench.growth import Curve
    from kvlab.bench.lines import Line
    from kvlab.bench.setting import Setting

INTERRUPTED = 130
NAMES = (
    "One of decode, decode-lowbit, prefill, batch, recompute, start, slider, open, chapters,"
    " allocator, simulator, cache-bits, train-tiny, fresh."
)


def bench(
    more: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", hidden=True)] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help=f"Rows to measure; more may follow. {NAMES}"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    growth: Annotated[
        bool, typer.Option("--growth", help="How costs grow, instead of the rows.")
    ] = False,
    peer: Annotated[
        list[str] | None, typer.Option(help="A peer's copy: nano-vllm=FOLDER. Its code is run.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of each comparison; else what suits the row.", min=1)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the picture as SVG.")] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the run in a file of runs.")] = None,
) -> None:
    """Measure rows in one run, ours and the peers' in turns: medians, ratios first.

    Without --only: model, cache, engine and arithmetic, under 15 minutes on 2 cores. Rows that
    take a browser or many minutes are measured when they are named. Ctrl+C prints what is there.
    """
    from kvlab.bench.reference import check_place
    from kvlab.bench.registry import chosen_rows, named_rows, parse_peers
    from kvlab.bench.setting import Setting

    named = named_rows([*(only or []), *(more or [])])
    rows = chosen_rows(named)
    peers = {name: Path(folder) for name, folder in parse_peers(peer or []).items()}
    if save is not None:
        check_place(save)
    setting = Setting(rounds=rounds, named=bool(named), peers=peers, say=_say)
    curves: list[Curve] = []
    lines, cut = _measured(rows, setting, curves if growth else None)
    machine = _machine()
    _print(lines, machine, as_json)
    if save is not None and lines:
        _keep(save, lines, machine, named, growth)
    if plot is not None and lines:
        _draw(plot, lines, curves, machine)
    if cut:
        raise typer.Exit(INTERRUPTED)


def _measured(
    rows: list[str], setting: "Setting", curves: "list[Curve] | None"
) -> "tuple[list[Line], bool]":
    from kvlab.bench.run import collected, measure

    lines = measure(rows, setting) if curves is None else _grown(rows, setting, curves)
    return collected(lines, _note)


def _grown(rows: list[str], setting: "Setting", curves: "list[Curve]") -> "Iterator[Line]":
    """Yield the line of each curve, and keep the curve."""
    from kvlab.bench.growth import GROWTH, grown

    for curve in grown(rows if setting.named else list(GROWTH), setting):
        curves.append(curve)
        yield curve.line()


def _machine() -> dict[str, Any]:
    from kvlab.bench.machine import describe_machine

    return describe_machine()


def _say(words: str) -> None:
    """Tell on stderr what is being measured now."""
    print(f"  {words}", file=sys.stderr, flush=True)


def _note(line: "Line") -> None:
    from kvlab.bench.table import said

    print(said(line), file=sys.stderr, flush=True)


def _print(lines: "list[Line]", machine: dict[str, Any], as_json: bool) -> None:
    from kvlab.bench.machine import machine_words

    if as_json:
        print(machine_words(machine), file=sys.stderr)
        print(json.dumps([line.to_dict() for line in lines], indent=2))
        return
    from rich.console import Console

    from kvlab.bench.table import bench_table, notes

    console = Console()
    console.print(machine_words(machine), highlight=False)
    console.print(bench_table(lines))
    for note in notes(lines):
        console.print(note, highlight=False, markup=False)


def _draw(path: Path, lines: "list[Line]", curves: "list[Curve]", machine: dict[str, Any]) -> None:
    """Write the bars; with curves one file for each, numbered."""
    from kvlab.bench.machine import machine_words
    from kvlab.bench.picture import bench_picture, drawn, growth_picture
    from kvlab.errors import InvalidArgument

    pictures = {}
    for number, curve in enumerate(curves, start=1):
        name = f"{path.stem}-{number}{path.suffix or '.svg'}"
        pictures[path.parent / name] = growth_picture(curve)
    if not curves and drawn(lines):
        pictures[path] = bench_picture(lines, title=f"kvlab bench: {machine_words(machine)}")
    if not pictures:
        _say(f"nothing to draw: no line has a ratio or a limit, so {path} is not written")
    for target, picture in pictures.items():
        try:
            target.write_text(picture + "\n", encoding="utf-8")
        except OSError as error:
            rule = f"can't be written ({error.strerror or error})"
            raise InvalidArgument("plot", str(target), rule) from None


def _keep(
    path: Path, lines: "list[Line]", machine: dict[str, Any], named: list[str], growth: bool
) -> None:
    from kvlab.bench.reference import KeptRun, save_run

    words = ["kvlab bench", *(f"--only {name}" for name in named), *(["--growth"] * growth)]
    save_run(path, KeptRun(machine, " ".join(words), tuple(lines)))

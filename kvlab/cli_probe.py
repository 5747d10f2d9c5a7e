"""`kvlab probe`: what the cache of a running server holds, and whether the formulas agree."""

import json
from typing import Annotated, Any

import typer

from kvlab.serving.engines.probe import ProbeReport, probe


def probe_command(
    url: Annotated[str, typer.Argument(metavar="URL", help="As http://127.0.0.1:8000.")],
    model: Annotated[str | None, typer.Option(help="Whose cache: a name or a hub id.")] = None,
    config: Annotated[str | None, typer.Option(help="Path of its config.json.")] = None,
    cache_dtype: Annotated[str | None, typer.Option(help="bf16, fp32, fp8, q8_0 ...")] = None,
    tp: Annotated[int, typer.Option(help="Tensor-parallel ranks.")] = 1,
    timeout: Annotated[
        float, typer.Option(help="Seconds for each answer, at most 3600.", min=0.1)
    ] = 5.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read a running vLLM or llama.cpp: capacity, use, who waits, preemptions, prefix hits.

    Only reads, and only from the address that you give. Redirects are told, not followed.
    """
    report = probe(url, model=model, config=config, cache_dtype=cache_dtype, tp=tp, timeout=timeout)
    print(json.dumps(report.to_dict(), indent=2)) if as_json else _show(report)


def lines_of(report: ProbeReport) -> list[tuple[str, str]]:
    """Return what is known as pairs of a name and a value in words."""
    told = report.to_dict()
    use, rate = told["block_use"], told["prefix_hit_rate"]
    pool = [
        f"{told['num_blocks']:,} blocks" if told["num_blocks"] else "",
        f"of {told['block_size']:,} tokens" if told["block_size"] else "",
    ]
    rows = {
        "engine": f"{report.engine} {report.version or ''}".strip(),
        "model": report.model,
        "longest request": _counted(report.max_model_len, "tokens"),
        "slots": _counted(report.slots, ""),
        "pool": " ".join(filter(None, pool)) or None,
        "tokens it holds": _counted(told["tokens"], ""),
        "requests of full length": None if (c := told["concurrency"]) is None else f"{c:.2f}",
        "in use": None if use is None else f"{use:.1%}",
        "running": _counted(told["running"], ""),
        "waiting": _counted(told["waiting"], ""),
        "preemptions so far": _counted(told["preemptions"], ""),
        "prefix hit rate": None if rate is None else f"{rate:.1%}",
    }
    return [(name, value) for name, value in rows.items() if value is not None]


def _counted(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:,.0f} {unit}".strip()


def _show(report: ProbeReport) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    console.print(f"[bold]{escape(report.address)}[/bold]", highlight=False)
    for name, value in lines_of(report):
        console.print(f"  {name:<24}{escape(value)}", highlight=False)
    if report.checks:
        console.print(_table(report))
    agreed, asked = sum(check.agrees for check in report.checks), len(report.checks)
    verdict = f"{agreed} of {asked} numbers agree" if asked else "nothing to compare"
    console.print(f"What it says and the formulas: {verdict}.", highlight=False)
    for note in report.notes:
        console.print(f"  - {escape(note)}", highlight=False)


def _table(report: ProbeReport) -> Any:
    from rich.table import Table

    table = Table()
    table.add_column("number")
    for column in ("reported", "formula"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for check in report.checks:
        said = [f"{x:,.2f}".rstrip("0").rstrip(".") for x in (check.reported, check.predicted)]
        table.add_row(check.quantity, *said, "equal" if check.agrees else "differs")
    return table

"""`kvlab plan`: does a model fit on these GPUs, for how many users, and what to change."""

import json
from typing import Annotated, Any

import typer

from kvlab.arithmetic.plan_checks import gib_to_bytes
from kvlab.arithmetic.plan_report import plan_report
from kvlab.arithmetic.sizing import plan as make_plan
from kvlab.errors import InvalidArgument


def plan(
    model: Annotated[str, typer.Option(help="A name in the catalogue, a config.json, a hub id.")],
    context: Annotated[int, typer.Option(help="Tokens of each request when it is admitted.")],
    gpu: Annotated[str | None, typer.Option(help="A GPU of the catalogue, such as H100.")] = None,
    gpus: Annotated[int | None, typer.Option(help="GPUs in all.")] = None,
    tp: Annotated[int | None, typer.Option(help="Tensor-parallel ranks of a replica.")] = None,
    pp: Annotated[int, typer.Option(help="Pipeline stages of a replica.")] = 1,
    dp: Annotated[int | None, typer.Option(help="Replicas.")] = None,
    output: Annotated[int, typer.Option(help="Tokens reserved for a request to grow.")] = 0,
    users: Annotated[int | None, typer.Option(help="Requests at once, over all replicas.")] = None,
    cache_dtype: Annotated[str, typer.Option(help="bf16, fp8 ...")] = "bf16",
    weights_dtype: Annotated[str, typer.Option(help="bf16, fp8, int4 ...")] = "bf16",
    utilization: Annotated[float, typer.Option(help="Share of the memory in use.")] = 0.9,
    overhead_gib: Annotated[float, typer.Option(help="Activations and buffers, each GPU.")] = 0.0,
    gpu_bytes: Annotated[int | None, typer.Option(help="Memory of one GPU, in bytes.")] = None,
    block_size: Annotated[int, typer.Option(help="Tokens of a block.")] = 16,
    ttft_ms: Annotated[float | None, typer.Option(help="Target: first token.")] = None,
    tpot_ms: Annotated[float | None, typer.Option(help="Target: each token after it.")] = None,
    parameters: Annotated[int | None, typer.Option(help="Weights, when unknown.")] = None,
    source_length: Annotated[int, typer.Option(help="Encoder or image positions.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan a deployment: what each rank holds, what binds, and what the next change buys."""
    given: dict[str, Any] = dict(locals())
    given.pop("as_json")
    given["overhead_bytes"] = gib_to_bytes("overhead_gib", given.pop("overhead_gib"))
    for target in ("ttft", "tpot"):
        given[f"{target}_target"] = _seconds(f"{target}_ms", given.pop(f"{target}_ms"))
    report = plan_report(make_plan(**given, allow_hub=True))
    print(json.dumps(report, indent=2)) if as_json else _show(report)


def _seconds(argument: str, milliseconds: float | None) -> float | None:
    if milliseconds is not None and not 0 < milliseconds < float("inf"):
        raise InvalidArgument(argument, milliseconds, "must be a finite number above 0")
    return None if milliseconds is None else milliseconds / 1000


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    console.print(_rank_table(report))
    console.print(_count_table(report))
    if report["changes"]:
        console.print(_change_table(report))
    for note in report["notes"]:
        console.print(f"  - {escape(note)}")
    console.print(f"[bold]{escape(report['verdict'])}[/bold]")
    console.print(escape(report["binds"]))
    last = report["command"] or f"no command: {report['no_command']}"
    console.print(escape(last), soft_wrap=True)


RANK_ROWS = {
    "memory_bytes_per_rank": "memory",
    "usable_bytes_per_rank": "usable",
    "weight_bytes_per_rank": "weights",
    "overhead_bytes_per_rank": "overhead",
    "budget_bytes_per_rank": "left for caches",
    "bytes_per_token_per_rank": "one token",
    "request_bytes_per_rank": "one request at its peak",
    "headroom_bytes": "headroom",
    "short_bytes": "does not fit by",
}


def _rank_table(report: dict[str, Any]) -> Any:
    from rich.table import Table

    from kvlab.arithmetic.units import format_bytes

    said = f"tp {report['tp']}, pp {report['pp']}, {report['dp']} replica(s)"
    place = f"{report['gpus']} x {report['gpu'] or 'GPU'}, {said}"
    stage = f"the tightest rank (stage {report['tightest_stage']})"
    table = Table(title=f"{report['model']} on {place}: {stage}")
    table.add_column("")
    table.add_column("size", justify="right")
    table.add_column("bytes", justify="right")
    for key, label in RANK_ROWS.items():
        if report[key] or key not in ("overhead_bytes_per_rank", "short_bytes"):
            table.add_row(label, format_bytes(report[key]), f"{report[key]:,}")
    return table


def _count_table(report: dict[str, Any]) -> Any:
    from rich.table import Table

    positions = f"{report['peak_positions']:,} positions"
    table = Table(title=f"Requests of {positions} on one replica")
    table.add_column("")
    table.add_column("requests", justify="right")
    for step in report["steps"]:
        table.add_row(step["assumption"], _count(step["concurrency"]))
    table.add_row("pool of what the ranks have left", _count(report["pooled_concurrency"]))
    for reason in report["pooled_reasons"]:
        table.add_row(f"  {reason}", "")
    if "concurrency" in report["engine"]:
        table.add_row("in vLLM's pages", _count(report["engine"]["concurrency"]))
    table.add_row("admission bound, whole requests", _count(report["admission_bound"]))
    table.add_row("tokens that fit", _count(report["capacity_tokens"]))
    if report["ttft_seconds"] is not None:
        table.add_row("first token, a prompt alone: at least", f"{report['ttft_seconds']:.3g} s")
        said = f"each token after it, {report['timed_batch']} request(s): at least"
        table.add_row(said, f"{1000 * report['tpot_seconds']:.3g} ms")
    return table


def _count(value: float | None) -> str:
    if value is None:
        return "any number"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _change_table(report: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table(title="What one change buys, cheapest first (all replicas)")
    for column in ("change", "cost"):
        table.add_column(column)
    for column in ("requests", "more"):
        table.add_column(column, justify="right")
    for change in report["changes"]:
        chosen = "bold" if change["change"] == report["next_change"] else ""
        bound, gained = change["total_admission_bound"], change["gained_requests"]
        table.add_row(change["change"], change["cost"], _count(bound), f"{gained:+,}", style=chosen)
    return table

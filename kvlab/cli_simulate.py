"""`kvlab simulate`: put a planned deployment under load, with a clock in place of a model."""

import json
import sys
from typing import Annotated, Any

import typer

from kvlab.arithmetic.plan_checks import gib_to_bytes
from kvlab.cli_tokens import token_count
from kvlab.errors import InvalidArgument

WORKLOAD = (
    "requests", "rate", "prompt_tokens", "output_tokens", "prefix_share", "seed",
)  # fmt: skip
PLANNED = (
    "gpu", "gpus", "tp", "block_size", "cache_dtype", "weights_dtype", "utilization", "parameters",
)  # fmt: skip
RULED = ("max_running", "max_batched_tokens", "reserve_output", "policy", "preemption")
TIMES = {
    "ttft_seconds": "to the first token",
    "queue_seconds": "of these, in the queue",
    "tpot_seconds": "for each token after it",
}
Gpus = Annotated[
    int, typer.Option(help="GPUs in all: one replica of tp = GPUs, or several of the tp given.")
]
Tp = Annotated[
    int | None, typer.Option(help="Tensor-parallel ranks of a replica; all GPUs if left out.")
]
MOST_SHOWN = 8
DIST = "An integer, lognormal:MEAN:SIGMA, uniform:LOW:HIGH, or a trace (.csv, .jsonl)."


def simulate(
    model: Annotated[str, typer.Option(help="A name in the catalogue, a config.json, a hub id.")],
    gpu: Annotated[str, typer.Option(help="A GPU of the catalogue, such as H100.")],
    prompt_tokens: Annotated[str, typer.Option(help=DIST)],
    output_tokens: Annotated[str, typer.Option(help=DIST)],
    requests: Annotated[
        int | None, typer.Option(help="How many; without it, the rows of the trace.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Arrivals a second (inf: all at once); without it, the trace's times."),
    ] = None,
    gpus: Gpus = 1,
    tp: Tp = None,
    block_size: Annotated[int, typer.Option(help="Tokens of a block.")] = 16,
    preemption: Annotated[str, typer.Option(help="recompute or swap.")] = "recompute",
    prefix_share: Annotated[float, typer.Option(help="Share of a prompt common to all.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of arrivals and lengths.")] = 0,
    max_running: Annotated[int, typer.Option(help="Most sequences at once.")] = 256,
    max_batched_tokens: Annotated[
        int, typer.Option(parser=token_count, help="Token budget of a step.")
    ] = 8192,
    reserve_output: Annotated[
        bool, typer.Option("--reserve-output", help="Admit only what fits at its full length.")
    ] = False,
    policy: Annotated[str, typer.Option(help="fcfs or priority (from the trace).")] = "fcfs",
    cache_dtype: Annotated[str, typer.Option(help="bf16, fp8 ...")] = "bf16",
    weights_dtype: Annotated[str, typer.Option(help="bf16, fp8, int4 ...")] = "bf16",
    utilization: Annotated[float, typer.Option(help="Share of the memory in use.")] = 0.9,
    overhead_gib: Annotated[float, typer.Option(help="Activations and buffers, each GPU.")] = 0.0,
    parameters: Annotated[int | None, typer.Option(help="Weights, when unknown.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Simulate continuous batching over the paged pool that the planner leaves for this model.

    Times are lower bounds from the roofline. The same scheduler drives a real model in
    `kvlab serve-demo`.
    """
    given: dict[str, Any] = dict(locals())
    report = simulate_report(given)
    print(json.dumps(report, indent=2)) if as_json else show_report(report)
    if not report["requests_finished"]:
        print("kvlab: no request was served to its end", file=sys.stderr)
        raise typer.Exit(1)


def simulate_report(given: dict[str, Any]) -> dict[str, Any]:
    """Run the simulation that the options of the command describe; return what `--json` prints."""
    from kvlab.serving.fleet import plan_fleet, simulate_fleet
    from kvlab.serving.limits import Limits
    from kvlab.serving.queue import PRIORITY
    from kvlab.serving.report import serving_report
    from kvlab.serving.workload import Workload

    work = Workload.of(**{name: given[name] for name in WORKLOAD})
    if given["policy"] == PRIORITY and not work.has_priorities:
        rule = "no request has a priority: give one trace with that column for both lengths"
        raise InvalidArgument("policy", PRIORITY, rule)
    fleet = plan_fleet(
        given["model"],
        typical_tokens=work.typical_tokens,
        overhead_bytes=gib_to_bytes("overhead_gib", given["overhead_gib"]),
        allow_hub=True,
        **{name: given[name] for name in PLANNED},
    )
    limits = Limits(max_seq_len=fleet.max_seq_len, **{name: given[name] for name in RULED})
    served = simulate_fleet(fleet, work, limits)
    return serving_report(served) | {"workload": work.describe()}


def show_report(report: dict[str, Any]) -> None:
    """Print a report as a table."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    work = report["workload"]
    said = f"{work['requests']:,} requests, {work['arrivals']}: prompts of {work['prompt_tokens']}"
    said += f", answers of {work['output_tokens']}"
    title = f"{report['model']} on {report['gpus']} x {report['gpu']}, tp {report['tp']}"
    table = Table(title=title, show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for label, cell in report_rows(report):
        table.add_row(label, cell)
    times = Table(title="milliseconds (lower bounds)")
    times.add_column("")
    for name in ("p50", "p95", "p99"):
        times.add_column(name, justify="right")
    for key, label in TIMES.items():
        cells = ("-" if x is None else f"{1000 * x:,.1f}" for x in report[key].values())
        times.add_row(label, *cells)
    console = Console()
    for line in (said, report["pool"]):
        console.print(escape(line))
    console.print(table, times)
    shown = report["errors"][:MOST_SHOWN]
    for error in shown:
        console.print(f"  - {escape(error)}")
    if more := report["errors_in_all"] - len(shown):
        console.print(f"  - and {more:,} more")


def report_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the table, what did not happen left out."""
    always = [
        ("requests finished", f"{report['requests_finished']:,}"),
        ("tokens generated", f"{report['tokens_generated']:,}"),
        ("tokens a second", f"{report['tokens_per_second']:,.0f}"),
        ("simulated time", f"{report['makespan_seconds']:,.1f} s"),
        ("taken to simulate", f"{report['wall_seconds']:,.1f} s"),
        ("sequences in a step, on average", f"{report['sustained_batch']:,.1f}"),
        ("blocks in use at the peak", f"{report['peak_blocks']:,} of {report['num_blocks']:,}"),
    ]
    asked, hit = report["prefix_query_tokens"], report["prefix_hit_tokens"]
    share = f" ({hit / asked:.0%})" if asked else ""
    sometimes = {
        "requests rejected": report["requests_rejected"],
        "requests that outgrew the pool": report["requests_failed"],
        "most waiting at once": report["peak_waiting"],
        "preemptions": report["preemptions"],
        "tokens computed again": report["recomputed_tokens"],
        f"prompt tokens found in the pool{share}": hit,
    }
    return always + [(label, f"{count:,}") for label, count in sometimes.items() if count]

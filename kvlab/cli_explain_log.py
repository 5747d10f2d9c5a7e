"""`kvlab explain-log`: what an engine printed at its start, predicted and explained."""

import json
from typing import Annotated, Any

import typer

from kvlab.arithmetic.logs.finding import DIFFERS, Finding
from kvlab.arithmetic.logs.report import LogReport, RunReport, explain_log
from kvlab.arithmetic.logs.text import load_log
from kvlab.arithmetic.units import GIB, KIB, MIB, format_bytes

UNIT_NAMES = {KIB: "KiB", MIB: "MiB", GIB: "GiB", 10**6: "MB", 10**9: "GB"}

WORDS = {
    "available": "memory for the cache",
    "kv_tokens": "tokens that the cache holds",
    "num_blocks": "blocks of the pool",
    "cpu_blocks": "blocks of the swap space",
    "needed": "memory that one request needs",
    "estimated_max_len": "longest request that fits",
    "max_concurrency": "requests of full length",
    "cache_bytes": "size of the cache",
    "kv_bytes": "size of the cache",
    "k_bytes": "size of the keys",
    "v_bytes": "size of the values",
    "cells": "cells",
    "state_bytes": "size of the states",
    "ssm_bytes": "size of the recurrent states",
    "buffer_bytes": "buffer of one device",
    "devices_bytes": "size on all devices",
    "estimate_bytes": "estimate before the start",
    "saved_by_windows": "saved by windows",
    "windowed_tokens": "tokens of the windowed pool",
    "published_bytes": "published size",
}


def explain_log_command(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Start-up output; - reads stdin.")],
    model: Annotated[str | None, typer.Option(help="Whose cache: a name or a hub id.")] = None,
    config: Annotated[str | None, typer.Option(help="Path of its config.json.")] = None,
    tp: Annotated[int | None, typer.Option(help="Tensor-parallel ranks.")] = None,
    block_size: Annotated[int | None, typer.Option(help="Tokens of a block.")] = None,
    cache_dtype: Annotated[str | None, typer.Option(help="bf16, fp8, q8_0 ...")] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Longest request.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain the start-up output of vLLM, SGLang, llama.cpp, ollama or TensorRT-LLM.

    Reads what you paste, finds the numbers about the KV cache, predicts them from the model's
    config and says why they differ. Options win over what the log says.
    """
    report = explain_log(
        load_log(file),
        model=model,
        config=config,
        tp=tp,
        block_size=block_size,
        cache_dtype=cache_dtype,
        max_model_len=max_model_len,
    )
    print(json.dumps(report.to_dict(), indent=2)) if as_json else _show(report)


def amount(finding: Finding, value: float) -> str:
    """Write a predicted value as the log writes the printed one: in its unit, a digit more."""
    scale = finding.fact.scale
    if scale == 1:
        return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
    unit = UNIT_NAMES.get(int(scale), finding.fact.printed.split()[-1])
    return f"{value / scale:,.3f} {unit}"


def _show(report: LogReport) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    for run in report.runs:
        console.print(f"\n[bold]{escape(_title(run))}[/bold]")
        console.print(escape(_settings(run)))
        if run.findings:
            console.print(_table(run))
        for number, finding in enumerate(run.findings, start=1):
            for said in (finding.estimate.rule, *finding.reasons):
                console.print(f"  {number}. {escape(said)}", highlight=False)
        for fact in run.given:
            name = WORDS.get(fact.name, fact.name)
            console.print(f"  - taken as given: {escape(name)}, {escape(fact.printed)}")
        for note in run.notes:
            console.print(f"  - {escape(note)}", highlight=False)
    for note in report.notes:
        console.print(f"\n{escape(note)}", highlight=False)


def _title(run: RunReport) -> str:
    version = run.run.text("version")
    engine = f"{run.run.engine} {version}" if version else run.run.engine
    if run.found is None:
        return f"{engine}: model not known"
    return f"{engine}: {run.found.storage.name} ({run.found.how})"


def _settings(run: RunReport) -> str:
    settings = run.case.settings
    said = [f"cache in {settings.cache_dtype}", f"tp {settings.tp}"]
    if run.run.engine in ("vllm", "sglang", "tensorrt-llm"):
        said.append(f"blocks of {settings.block_size} token(s)")
    if run.bytes_per_token is not None:
        said.append(f"{format_bytes(run.bytes_per_token)} a token on a rank")
    assumed = f" (assumed: {', '.join(settings.assumed)})" if settings.assumed else ""
    return ", ".join(said) + assumed


def _table(run: RunReport) -> Any:
    from rich.table import Table

    table = Table()
    for column in ("", "line", "number"):
        table.add_column(column)
    for column in ("printed", "predicted"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for number, finding in enumerate(run.findings, start=1):
        style = "bold" if finding.verdict == DIFFERS else None
        table.add_row(
            str(number),
            str(finding.fact.line),
            WORDS.get(finding.quantity, finding.quantity),
            finding.fact.printed,
            amount(finding, finding.estimate.value),
            finding.verdict,
            style=style,
        )
    return table

"""`kvlab flops`: count the work of one generation, with and without a cache."""

import json
from typing import Annotated, Any

import typer

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flops import (
    flops_cached,
    flops_uncached,
    token_forwards_cached,
    token_forwards_uncached,
)
from kvlab.arithmetic.units import format_flops


def flops(
    model: Annotated[str, typer.Option(help="Hub id, short name or model folder.")],
    prompt: Annotated[int, typer.Option(help="Prompt tokens, P.")],
    new: Annotated[int, typer.Option(help="Emitted tokens, N.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count token-forwards and FLOPs of P prompt and N emitted tokens, cached and uncached."""
    report = flops_report(model, prompt, new)
    print(json.dumps(report, indent=2)) if as_json else _show(model, report)


def flops_report(model: str, prompt: int, new: int) -> dict[str, Any]:
    """Return the counts of `kvlab flops` as plain numbers; `ratio` is uncached / cached FLOPs.

    >>> report = flops_report("llama-3.1-8b", 2000, 1000)
    >>> report["cached_token_forwards"], round(report["ratio"], 1)
    (2999, 807.4)
    """
    shape = model_shape(model)
    cached, uncached = flops_cached(shape, prompt, new), flops_uncached(shape, prompt, new)
    return {
        "cached_token_forwards": token_forwards_cached(prompt, new),
        "uncached_token_forwards": token_forwards_uncached(prompt, new),
        "cached_flops": cached.total,
        "uncached_flops": uncached.total,
        "ratio": uncached.total / cached.total,
        "by_part": {"cached": cached.by_part, "uncached": uncached.by_part},
    }


def _show(model: str, report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{model}: work with and without a cache")
    table.add_column("")
    for column in ("cached", "uncached", "times"):
        table.add_column(column, justify="right")
    cached, uncached = report["by_part"]["cached"], report["by_part"]["uncached"]
    forwards = report["cached_token_forwards"], report["uncached_token_forwards"]
    table.add_row("token-forwards", *(f"{n:,}" for n in forwards), _times(*forwards))
    table.add_section()
    for part, amount in cached.items():
        row = format_flops(amount), format_flops(uncached[part]), _times(amount, uncached[part])
        table.add_row(part.replace("_", " "), *row)
    table.add_section()
    totals = report["cached_flops"], report["uncached_flops"]
    table.add_row("all FLOPs", *(format_flops(n) for n in totals), _times(*totals))
    Console().print(table)


def _times(cached: int, uncached: int) -> str:
    return f"{uncached / cached:,.1f}"

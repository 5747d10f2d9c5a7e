"""What `kvlab plan` prints for people: three tables, the notes and one verdict."""

from typing import Any


def show_plan(report: dict[str, Any]) -> None:
    """Print a `plan_report` as tables; what is missing is said once."""
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    console.print(_rank_table(report))
    console.print(_count_table(report))
    gaining = [change for change in report["changes"] if _gains(report, change)]
    if gaining:
        console.print(_change_table(report, gaining))
    elif report["changes"]:
        console.print("no single change serves one request more; some lessen what is missing")
    for note in report["notes"]:
        console.print(f"  - {escape(note)}")
    first, *others = _verdict(report)
    console.print(f"[bold]{escape(first)}[/bold]", soft_wrap=True)
    for said in others:
        console.print(escape(said), soft_wrap=True)
    console.print(escape(report["command"] or _no_command(report)), soft_wrap=True)


def _verdict(report: dict[str, Any]) -> list[str]:
    """One verdict first: how many users are served when they were given; then why."""
    reasons = list(dict.fromkeys([report["verdict"], report["binds"]]))
    users, served = report["users"], _served(report)
    if users is None:
        return reasons
    if served is None or served >= users:
        return [f"enough: all {users:,} user(s) are served", *reasons]
    return [f"not enough: {served:,} of {users:,} user(s) are served", *reasons]


def _no_command(report: dict[str, Any]) -> str:
    """The reason is left out where the verdict has said it already."""
    why = report["no_command"]
    return "no command" if why == report["verdict"] else f"no command: {why}"


def _served(report: dict[str, Any]) -> int | None:
    return None if report["in_time"] is None else report["in_time"] * report["dp"]


def _gains(report: dict[str, Any], change: dict[str, Any]) -> bool:
    """Whether a change serves one request more, or places one more."""
    before, after = _served(report), change["in_time"]
    more = before is not None and (after is None or after > before)
    return more or change["gained_requests"] > 0


RANK_ROWS = {
    "memory_bytes_per_rank": "memory",
    "usable_bytes_per_rank": "usable",
    "weight_bytes_per_rank": "weights",
    "overhead_bytes_per_rank": "overhead",
    "budget_bytes_per_rank": "left for caches",
    "bytes_per_token_per_rank": "one token",
    "request_bytes_per_rank": "one request at its peak",
    "charged_bytes_per_rank": "the same in vLLM's pages",
    "headroom_bytes": "headroom",
    "short_without_requests": "missing, no request",
    "short_bytes": "missing, {} request(s)",
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
        if _is_shown(report, key):
            placed = -(-(report["users"] or 1) // report["dp"])
            size = format_bytes(report[key])
            table.add_row(label.format(f"{placed:,}"), size, f"{report[key]:,}")
    return table


def _is_shown(report: dict[str, Any], key: str) -> bool:
    if key == "charged_bytes_per_rank":
        return report[key] > report["request_bytes_per_rank"]
    return bool(report[key]) or not key.startswith(("overhead", "short"))


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


def _change_table(report: dict[str, Any], changes: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title="What one change buys, cheapest first (all replicas)")
    for column in ("change", "cost"):
        table.add_column(column)
    is_timed = any(c["in_time"] != c["total_admission_bound"] for c in report["changes"])
    for column in ("requests", "more", *(["in time"] if is_timed else [])):
        table.add_column(column, justify="right")
    for change in changes:
        chosen = "bold" if change["change"] == report["next_change"] else ""
        bound, gained = change["total_admission_bound"], change["gained_requests"]
        counts = [_count(bound), f"{gained:+,}"]
        counts += [_count(change["in_time"])] if is_timed else []
        table.add_row(change["change"], change["cost"], *counts, style=chosen)
    return table

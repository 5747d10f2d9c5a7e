"""`kvlab audit`: every claim on record, recomputed, with its verdict and the reason."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kvlab.course.audit import AuditRow

STYLES = {
    "holds": "green",
    "holds-with-rounding": "green",
    "conditional": "yellow",
    "wrong": "red",
    "unverifiable": "dim",
}


def audit(
    topic: Annotated[str | None, typer.Option(help="One topic, with the reasons.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute published claims on the KV cache, and say which hold, when, and which do not."""
    from kvlab.course.audit import audit_rows

    rows = audit_rows(topic)
    if as_json:
        print(json.dumps([row.as_json() for row in rows], indent=2))
        return
    from rich.console import Console

    console = Console()
    if topic is None:
        for name in dict.fromkeys(row.topic for row in rows):
            console.print(_claim_table(name, [row for row in rows if row.topic == name]))
    else:
        _show_reasons(console, rows)
    console.print(_count_table(rows))
    if topic is None:
        console.print("kvlab audit --topic NAME says why.")


def write_number(value: float) -> str:
    """Write a number for people; zeros at its end say that it is rounded.

    >>> [write_number(n) for n in (327_680, 320.0, 2.5, 7.997001, 4.0001, 0.0033873, 10**18)]
    ['327,680', '320', '2.5', '7.997', '4.000', '0.00339', '1e+18']
    """
    size, near = abs(value), round(value, 9)
    if near == int(near):
        return f"{int(near):,}" if size < 10**15 else f"{value:.6g}"
    if near == round(near, 2):
        return f"{near:,}"
    return f"{value:.3g}" if size < 1 else f"{value:,.3f}" if size < 10 else f"{value:,.2f}"


def write_computed(row: "AuditRow") -> str:
    """Write what was recomputed, each number with its unit; a dash where nothing is counted."""
    value = row.computed()
    if value is None:
        return "-"
    numbers = [write_number(one) for one in (value if isinstance(value, list) else [value])]
    units = row.unit.split("; ")
    if len(units) == len(numbers) > 1 and ":" not in row.unit:
        return "; ".join(f"{number} {unit}" for number, unit in zip(numbers, units, strict=True))
    return f"{' / '.join(numbers)} {row.unit}".strip()


def _claim_table(topic: str, rows: Sequence["AuditRow"]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{topic}: {len(rows)} claims", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("claim", no_wrap=True)
    table.add_column("claimed", ratio=4)
    table.add_column("recomputed", ratio=5)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        said = "holds, rounded" if row.verdict == "holds-with-rounding" else row.verdict
        verdict = f"[{STYLES[row.verdict]}]{said}[/]"
        table.add_row(row.id, escape(row.claimed), escape(write_computed(row)), verdict)
    return table


def _show_reasons(console: Any, rows: Sequence["AuditRow"]) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    for row in rows:
        console.print(f"[bold]{row.id}[/] [{STYLES[row.verdict]}]{row.verdict}[/]")
        said = f"claimed: {row.claimed}; recomputed: {write_computed(row)}"
        for text in (row.statement, said, row.why, f"{row.source}, {row.as_of}"):
            console.print(Padding(escape(text), (0, 0, 0, 2)), highlight=False)
        console.print()


def _count_table(rows: Sequence["AuditRow"]) -> Any:
    from rich.table import Table

    from kvlab.course.audit import count_verdicts

    counts = count_verdicts(rows)
    table = Table(title=f"{len(rows)} claims by topic and verdict", title_justify="left")
    table.add_column("topic")
    for verdict in counts:
        table.add_column(verdict, justify="right")
    topics = list(dict.fromkeys(row.topic for row in rows))
    for topic in topics:
        own = count_verdicts([row for row in rows if row.topic == topic])
        table.add_row(topic, *(str(count or "") for count in own.values()))
    if len(topics) > 1:
        table.add_section()
        table.add_row("all", *(str(count) for count in counts.values()))
    return table

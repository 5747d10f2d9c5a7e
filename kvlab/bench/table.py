"""The bench for people: a table with ratios first, notes below it, and the same as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kvlab.bench.aims import MET, MISSED, aim_of, verdict
from kvlab.bench.lines import Line, short

if TYPE_CHECKING:
    from rich.table import Table

STYLES = {MET: "green", MISSED: "red"}


def cells(line: Line) -> dict[str, str]:
    """Return what a table shows of a line, by column; an empty text where there is nothing.

    >>> cells(Line("start: x", unit="ms", ours=2.0, peer=5.0, peer_name="y"))["ratio"]
    '2.5x'
    """
    aim = aim_of(line)
    return {
        "work": line.work,
        "ratio": f"{short(line.ratio)}x" if line.ratio else "",
        "of limit": f"{100 * line.of_limit:.0f} %" if line.of_limit else "",
        "ours": _amount(line.ours, line.unit),
        "peer": f"{_number(line.peer)} {line.peer_name}".strip() if line.peer_name else "",
        "spread": f"{100 * line.spread:.0f} %" if line.spread is not None else "",
        "aim": aim.words(line.unit) if aim else "",
        "verdict": verdict(line),
    }


def said(line: Line) -> str:
    """Return a line in one sentence, for the terminal while the bench runs.

    >>> said(Line("start: x", unit="ms", note="no peer"))
    'start: x: not measured (no peer)'
    """
    shown = cells(line)
    parts = [shown["ratio"], shown["of limit"] and f"{shown['of limit']} of the limit"]
    parts += [shown["ours"]]
    words = ", ".join(filter(None, parts))
    return f"{line.work}: {words or f'not measured ({line.note})'}"


def bench_table(lines: Sequence[Line]) -> Table:
    """Return a rich table, ratios first; the notes are numbered and stand below it (`notes`)."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(title="kvlab bench: medians of interleaved rounds", box=SIMPLE_HEAD)
    table.title_justify = "left"
    for name in ("ratio", "of limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what", overflow="fold", ratio=1)
    table.add_column("aim", no_wrap=True)
    for number, line in enumerate(lines, start=1):
        shown = cells(line)
        style = next((s for word, s in STYLES.items() if shown["verdict"].startswith(word)), "dim")
        details = [shown["ours"] and f"ours {shown['ours']}", shown["peer"]]
        details += [shown["spread"] and f"spread {shown['spread']}", shown["aim"]]
        what = Text.assemble(f"{number}. {line.work}\n", ("; ".join(filter(None, details)), "dim"))
        table.add_row(shown["ratio"], shown["of limit"], what, Text(shown["verdict"], style))
    return table


def notes(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the note of each line that has one, with its number."""
    for number, line in enumerate(lines, start=1):
        if line.note:
            yield f"  {number}. {line.note}"


def markdown(lines: Sequence[Line]) -> list[str]:
    """Return the table as Markdown, without the notes; `missed_words` has those that matter.

    >>> markdown([Line("start: x", unit="ms", ours=2.0)])[2]
    '| start: x | | | 2 ms | | stated |'
    """
    names = ("work", "ratio", "of the limit", "ours", "peer", "aim")
    head = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    return head + [_markdown_row(line) for line in lines]


def missed_words(lines: Sequence[Line]) -> list[str]:
    """Return a sentence for each line that missed its aim, or was not measured, with its note."""
    found = []
    for line in lines:
        state = verdict(line)
        if state.startswith(MISSED) or line.ours is None:
            found.append(f"- {state}: {line.work}. {line.note}".rstrip())
    return found


def _markdown_row(line: Line) -> str:
    shown = cells(line)
    aim = f"{shown['verdict']}: {shown['aim']}" if shown["aim"] else shown["verdict"]
    row = (line.work, shown["ratio"], shown["of limit"], shown["ours"], shown["peer"], aim)
    filled = [f" {text.replace('|', '/')} " if text else " " for text in row]
    return "|" + "|".join(filled) + "|"


def _amount(value: float | None, unit: str) -> str:
    return "" if value is None else f"{short(value)} {unit}"


def _number(value: float | None) -> str:
    return "" if value is None else short(value)

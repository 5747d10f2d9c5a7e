"""The live table of `kvlab serve-demo`: one line for each answer, and the pool above them."""

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from kvlab.serving.sequence import RUNNING, Sequence

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel
    from kvlab.serving.engine import Answer
    from kvlab.serving.loop import ServingLoop
    from kvlab.serving.request import Request

BAR_CELLS = 30
COLOURS = {"runs": "green", "waits": "yellow", "gave way": "red", "on the host": "magenta"}


def serving_table(
    loaded: "LoadedModel",
    loop: "ServingLoop",
    asked: "list[Request]",
    answers: "dict[tuple[int, int], Answer]",
) -> Group:
    """Return what the terminal shows after a step."""
    table = Table(expand=True)
    table.add_column("answer", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for column in ("tokens", "blocks", "gave way"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("text so far", ratio=1, no_wrap=True, overflow="ellipsis")
    live = {seq.name: seq for group in loop.scheduler.live.values() for seq in group}
    for request in asked:
        for sample in range(request.num_samples):
            name = (request.request_id, sample)
            label = f"{name[0]}.{sample}" if request.num_samples > 1 else f"{name[0]}"
            table.add_row(label, *_cells(loaded, loop, request, live.get(name), answers.get(name)))
    return Group(pool_lines(loop), table)


def pool_lines(loop: "ServingLoop") -> str:
    """Return the pool as a bar, and the counters under it."""
    scheduler, manager = loop.scheduler, loop.scheduler.manager
    filled = round(BAR_CELLS * manager.num_used / manager.num_blocks)
    bar = "█" * filled + "░" * (BAR_CELLS - filled)
    counts = scheduler.counts
    rate = counts.generation_tokens / loop.now if loop.now else 0.0
    running, waiting = len(scheduler.running), len(scheduler.waiting)
    return (
        f"step {counts.steps:4d}  {bar} {manager.num_used:3d} of {manager.num_blocks} blocks\n"
        f"{running} run, {waiting} wait, {counts.preemptions} gave way,"
        f" {counts.prefix_hit_tokens} prompt tokens found, {rate:.1f} tokens a second"
    )


def _cells(
    loaded: "LoadedModel",
    loop: "ServingLoop",
    request: "Request",
    seq: Sequence | None,
    answer: "Answer | None",
) -> tuple[Any, ...]:
    """Return state, tokens, blocks, preemptions and text of one answer."""
    if answer is not None:
        state = "[blue]done[/]" if answer.error is None else f"[red]{answer.end_reason}[/]"
        text = answer.error or loaded.decode(answer.token_ids)
        preempted = f"{answer.num_preemptions or ''}"
        return state, f"{len(answer.token_ids)}", "", preempted, escape(text.replace("\n", " "))
    if seq is None:
        return "[dim]to come[/]", "", "", "", ""
    state = state_of(seq)
    held = loop.scheduler.manager.block_table(seq.seq_id) if seq.state == RUNNING else ()
    text = loaded.decode(seq.emitted_ids).replace("\n", " ")
    return (
        f"[{COLOURS[state]}]{state}[/]",
        f"{seq.num_emitted}",
        f"{len(held) or ''}",
        f"{seq.num_preemptions or ''}",
        escape(text),
    )


def state_of(seq: Sequence) -> str:
    """Return what a sequence does, in the words of the table."""
    if seq.state == RUNNING:
        return "runs"
    if seq.host_blocks is not None:
        return "on the host"
    return "gave way" if seq.num_preemptions else "waits"

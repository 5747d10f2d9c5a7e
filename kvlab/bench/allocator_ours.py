"""Play an allocator trace on our block manager, called in one of three ways, and our scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from kvlab.bench.allocator_trace import Played, Trace, TraceRequest
from kvlab.paging import BlockManager
from kvlab.serving.limits import Limits
from kvlab.serving.request import prompt
from kvlab.serving.scheduler import Scheduler

Running = list[tuple[int, list[int], int]]
"""Number, tokens so far, and the step after which it ends, of each that runs."""


def play_manager(trace: Trace, way: str) -> Played:
    """Play a trace on `BlockManager`; `way` says what is called for each token, see `WAYS`.

    >>> from kvlab.bench.allocator_trace import make_trace
    >>> play_manager(make_trace(20, block_size=16, seed=1), "asks").hit_share > 0.2
    True
    """
    manager, steps = BlockManager(trace.num_blocks, trace.block_size), WAYS[way]
    coming, running, now = iter(enumerate(trace.requests)), [], 0
    started = perf_counter()
    while _admit(manager, trace, coming, running, now):
        until = min(end for _, _, end in running)
        steps(manager, running, now, until)
        now = until
        for seq_id in [seq_id for seq_id, _, end in running if end == now]:
            manager.free(seq_id)
        running = [row for row in running if row[2] != now]
    seconds = perf_counter() - started
    return Played(seconds, manager.counts["asked"], manager.counts["hit"])


def play_scheduler(trace: Trace) -> Played:
    """Play a trace on `Scheduler` without a model: plan a step, hand back a token for each.

    >>> from kvlab.bench.allocator_trace import make_trace
    >>> play_scheduler(make_trace(20, block_size=16, seed=1)).hit_share > 0.1
    True
    """
    manager = BlockManager(trace.num_blocks, trace.block_size)
    limits = Limits(max_batched_tokens=trace.batch_tokens, max_running=trace.running)
    scheduler = Scheduler(manager, limits)
    started = perf_counter()
    for number, request in enumerate(trace.requests):
        scheduler.add(prompt(number, request.prompt_ids, request.new_tokens))
    while scheduler.has_work:
        plan = scheduler.schedule()
        scheduler.complete(plan, [plan.step] * len(plan.emitting))
    seconds = perf_counter() - started
    return Played(seconds, manager.counts["asked"], manager.counts["hit"])


def _admit(
    manager: BlockManager,
    trace: Trace,
    coming: Iterator[tuple[int, TraceRequest]],
    running: Running,
    now: int,
) -> bool:
    """Admit while there are places; return whether anything runs."""
    while len(running) < trace.running and (following := next(coming, None)) is not None:
        seq_id, request = following
        tokens = list(request.prompt_ids)
        manager.allocate(seq_id, tokens)
        manager.commit(seq_id, tokens)
        running.append((seq_id, tokens, now + request.new_tokens))
    return bool(running)


def _lean(manager: BlockManager, running: Running, start: int, end: int) -> None:
    """Call as our scheduler does: `append`, and `commit` when a block is full."""
    append, size = manager.append, manager.block_size
    for token in range(start, end):
        for seq_id, tokens, _ in running:
            append(seq_id)
            tokens.append(token)
            if len(tokens) % size == 0:
                manager.commit(seq_id, tokens)


def _asks(manager: BlockManager, running: Running, start: int, end: int) -> None:
    """Call `can_append`, `append` and `commit` for every token."""
    can_append, append, commit = manager.can_append, manager.append, manager.commit
    for token in range(start, end):
        for seq_id, tokens, _ in running:
            if can_append(seq_id):
                append(seq_id)
            tokens.append(token)
            commit(seq_id, tokens)


def _asks_in_two(manager: BlockManager, running: Running, start: int, end: int) -> None:
    """Call `can_append` and `append(..., computed=...)`, which commits as it grows."""
    can_append, append = manager.can_append, manager.append
    for token in range(start, end):
        for seq_id, tokens, _ in running:
            if can_append(seq_id):
                append(seq_id, 1, tokens)
            tokens.append(token)


WAYS: dict[str, Callable[[BlockManager, Running, int, int], None]] = {
    "as our scheduler": _lean,
    "asks": _asks,
    "asks in two calls": _asks_in_two,
}
"""How a manager may be called for each token."""

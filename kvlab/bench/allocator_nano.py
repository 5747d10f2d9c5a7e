"""Play an allocator trace on nano-vllm's block manager, read from a copy that the user names.

Only its files `block_manager.py`, `scheduler.py` and `sequence.py` are run, without the package's
own start, which would load a GPU engine. Nothing of it is kept or shipped.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from types import ModuleType, SimpleNamespace
from typing import Any

from kvlab.bench.allocator_trace import Played, Trace, TraceRequest
from kvlab.errors import InvalidArgument, Unsupported

PACKAGE = "nanovllm"


def load_nano(path: str | Path) -> dict[str, Any]:
    """Return the modules block_manager, sequence and scheduler of a copy of nano-vllm, by name.

    Raises `InvalidArgument` where the folder holds no copy, `Unsupported` where a package that
    it imports (xxhash, numpy, transformers) is missing.
    """
    folder = Path(path).expanduser() / PACKAGE
    if not (folder / "engine" / "block_manager.py").is_file():
        rule = "must be a folder that holds nanovllm/engine/block_manager.py"
        raise InvalidArgument("peer nano-vllm", str(path), rule)
    for name, where in ((PACKAGE, folder), (f"{PACKAGE}.engine", folder / "engine")):
        shell = ModuleType(name)  # the real __init__ would import its engine, and that wants CUDA
        shell.__path__ = [str(where)]  # type: ignore[attr-defined]
        sys.modules[name] = shell
    try:
        names = ("block_manager", "sequence", "scheduler")
        return {name: importlib.import_module(f"{PACKAGE}.engine.{name}") for name in names}
    except ImportError as missing:
        raise Unsupported(f"nano-vllm needs the package {missing.name}: pip install it") from None


Running = list[tuple[Any, int]]


def play_nano(trace: Trace, modules: dict[str, Any]) -> Played:
    """Play a trace on its block manager, called as its own scheduler calls it.

    That is `can_append`, `may_append` and `hash_blocks` for every token.
    """
    sequence = modules["sequence"].Sequence
    sequence.block_size = trace.block_size
    manager = modules["block_manager"].BlockManager(trace.num_blocks, trace.block_size)
    coming, running, counted, now = iter(trace.requests), [], [0, 0], 0
    started = perf_counter()
    while _admit(manager, sequence, trace, coming, running, counted, now):
        until = min(end for _, end in running)
        _steps(manager, running, now, until)
        now = until
        for seq in [seq for seq, end in running if end == now]:
            manager.deallocate(seq)
        running = [row for row in running if row[1] != now]
    return Played(perf_counter() - started, *counted)


def play_nano_scheduler(trace: Trace, modules: dict[str, Any]) -> Played:
    """Play a trace on its scheduler without a model: plan a step, hand back a token for each."""
    scheduler, sequences = _nano_scheduler(trace, modules)
    seen: set[int] = set()
    started, asked, hit, step = perf_counter(), 0, 0, 0
    for request in trace.requests:
        limits = modules["sequence"].SamplingParams(max_tokens=request.new_tokens, ignore_eos=True)
        scheduler.add(sequences(request.prompt_ids, limits))
    while not scheduler.is_finished():
        seqs, is_prefill = scheduler.schedule()
        for seq in seqs if is_prefill else ():
            if seq.seq_id not in seen:  # a long prompt comes in several chunks
                seen.add(seq.seq_id)
                asked, hit = asked + seq.num_tokens, hit + seq.num_cached_tokens
        scheduler.postprocess(seqs, [step] * len(seqs), is_prefill)
        step += 1
    return Played(perf_counter() - started, asked, hit)


def _nano_scheduler(trace: Trace, modules: dict[str, Any]) -> tuple[Any, Any]:
    sequence = modules["sequence"].Sequence
    sequence.block_size = trace.block_size
    config = SimpleNamespace(
        max_num_seqs=trace.running,
        max_num_batched_tokens=trace.batch_tokens,
        eos=-1,
        kvcache_block_size=trace.block_size,
        num_kvcache_blocks=trace.num_blocks,
    )
    return modules["scheduler"].Scheduler(config), sequence


def _admit(
    manager: Any,
    sequence: Any,
    trace: Trace,
    coming: Iterator[TraceRequest],
    running: Running,
    counted: list[int],
    now: int,
) -> bool:
    """Admit while there are places; return whether anything runs."""
    while len(running) < trace.running and (request := next(coming, None)) is not None:
        seq = sequence(request.prompt_ids)
        manager.allocate(seq, manager.can_allocate(seq))
        counted[0] += len(request.prompt_ids)
        counted[1] += seq.num_cached_tokens
        seq.num_scheduled_tokens = seq.num_tokens - seq.num_cached_tokens
        manager.hash_blocks(seq)
        seq.num_cached_tokens += seq.num_scheduled_tokens
        running.append((seq, now + request.new_tokens))
    return bool(running)


def _steps(manager: Any, running: Running, start: int, end: int) -> None:
    """Append the token of the last step, give it a slot, and hash its block when that is full."""
    can_append, may_append, hash_blocks = (
        manager.can_append, manager.may_append, manager.hash_blocks
    )  # fmt: skip
    for token in range(start, end):
        for seq, _ in running:
            seq.append_token(token)
            if can_append(seq):
                may_append(seq)
            seq.num_scheduled_tokens = 1
            hash_blocks(seq)
            seq.num_cached_tokens += 1

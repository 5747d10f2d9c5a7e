"""Row allocator: block manager and scheduler on one trace, beside nano-vllm's where it is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kvlab.bench.allocator_ours import WAYS, play_manager, play_scheduler
from kvlab.bench.allocator_trace import Played, Trace, make_trace
from kvlab.bench.lines import Line, compared, joined
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Times, interleaved

PEER = "nano-vllm"
BLOCK_SIZES = (256, 16)
"""nano-vllm's own smallest block, and ours."""

UNIT = "ns an operation"


def rows(setting: Setting) -> Iterator[Line]:
    """Yield lines for both block sizes: each way of calling the manager, then the scheduler."""
    modules, absent = nano(setting)
    for block_size in BLOCK_SIZES:
        trace = make_trace(block_size=block_size)
        setting.say(f"allocator: blocks of {block_size}")
        yield from _lines(setting, trace, modules, absent)


def nano(setting: Setting) -> tuple[Mapping[str, Any], str]:
    """Return nano-vllm's modules, or why there are none."""
    path = setting.peers.get(PEER)
    if path is None:
        return {}, f"{PEER} is absent: name a copy with --peer {PEER}=FOLDER"
    from kvlab.bench.allocator_nano import load_nano

    try:
        return load_nano(path), ""
    except Exception as error:
        return {}, f"{PEER} is absent: {reason(error)}"


def _lines(
    setting: Setting, trace: Trace, modules: Mapping[str, Any], absent: str
) -> Iterator[Line]:
    played: dict[str, Played] = {}
    works = {name: _keeping(played, name, work) for name, work in _works(trace, modules).items()}
    times = {
        name: Times(tuple(value / trace.new_tokens for value in found.values))
        for name, found in interleaved(works, setting.times(7)).items()
    }
    where = f"blocks of {trace.block_size}"
    for name in [*WAYS, SCHEDULER]:
        rival = NANO_SCHEDULER if name == SCHEDULER else NANO_MANAGER
        peers = {PEER: times[rival]} if rival in times else {}
        shares = f"{played[name].hit_share:.1%} of the prompt tokens hit"
        if rival in played:
            shares += f" ({PEER} {played[rival].hit_share:.1%})"
        pool = f"pool of {trace.num_blocks:,} blocks, {shares}"
        note = joined([pool, f"{trace.new_tokens:,} tokens of {len(trace.requests)} requests",
                       absent])  # fmt: skip
        what = SCHEDULER if name == SCHEDULER else f"block manager, called {CALLED[name]}"
        work = f"allocator: {what}, {where}"
        yield compared(work, UNIT, times[name], peers, scale=1e9, note=note)


SCHEDULER, NANO_MANAGER, NANO_SCHEDULER = "scheduler", "nano manager", "nano scheduler"
CALLED = {
    "as our scheduler": "as each one's own scheduler does",
    "asks": "in three calls a token: ask, append, commit",
    "asks in two calls": "in two calls a token: ask, append and commit",
}


def _works(trace: Trace, modules: Mapping[str, Any]) -> dict[str, Callable[[], Played]]:
    works: dict[str, Callable[[], Played]] = {
        way: lambda way=way: play_manager(trace, way) for way in WAYS
    }
    works[SCHEDULER] = lambda: play_scheduler(trace)
    if modules:
        from kvlab.bench.allocator_nano import play_nano, play_nano_scheduler

        works[NANO_MANAGER] = lambda: play_nano(trace, dict(modules))
        works[NANO_SCHEDULER] = lambda: play_nano_scheduler(trace, dict(modules))
    return works


def _keeping(
    played: dict[str, Played], name: str, work: Callable[[], Played]
) -> Callable[[], float]:
    def timed() -> float:
        played[name] = work()
        return played[name].seconds

    return timed

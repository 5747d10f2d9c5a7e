"""One stream of requests through one allocator, step by step: what two allocators can be raced on.

First come, first served; every running request gets one token a step. Left out: a token budget,
chunks, prefixes and clocks (`kvlab.serving`), so that only the allocator makes a difference.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.paging.contiguous import ContiguousManager
from kvlab.paging.events import letter
from kvlab.paging.pieces import Manager, Piece, Snapshot, pieces_of, snapshot, thawed, use_of
from kvlab.paging.waste import SlotUse


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A request: its number, the step at which it comes, and its tokens."""

    number: int
    arrives: int
    prompt_tokens: int
    output_tokens: int

    @property
    def final_length(self) -> int:
        """Tokens held when the last one is written; that one needs no slot."""
        return self.prompt_tokens + self.output_tokens - 1


@dataclass(frozen=True)
class StreamStep:
    """What one look after a step shows; `words` say what happened in it.

    `held` is the memory then. `use` and `pieces` are found when asked for: few steps are looked at.
    """

    step: int
    running: tuple[int, ...]
    waiting: tuple[int, ...]
    finished: int
    preempted: int
    tokens_written: int
    words: str
    held: Snapshot = field(repr=False, compare=False)

    @cached_property
    def use(self) -> SlotUse:
        """What every slot was doing."""
        return use_of(thawed(self.held))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """What every sequence held."""
        return tuple(pieces_of(thawed(self.held)))


@dataclass
class _Run:
    """The state between two steps."""

    manager: Manager
    coming: list[StreamRequest]
    waiting: list[StreamRequest] = field(default_factory=list)
    running: list[StreamRequest] = field(default_factory=list)
    written: dict[int, int] = field(default_factory=dict)
    finished: int = 0
    preempted: int = 0
    tokens: int = 0


def make_stream(
    count: int,
    *,
    mean_prompt: int,
    mean_output: int,
    spread: float = 0.6,
    every: int = 2,
    longest: int | None = None,
    seed: int = 0,
) -> list[StreamRequest]:
    """Return `count` requests, one each `every` steps, with lengths lognormal around the means.

    `spread` 0 makes all lengths equal. No request is longer than `longest` tokens in the end.

    >>> [r.final_length for r in make_stream(3, mean_prompt=10, mean_output=5, spread=0)]
    [14, 14, 14]
    """
    rng = random.Random(f"stream {whole_number('seed', seed, minimum=0)}")
    if not 0 <= spread <= 3:
        raise InvalidArgument("spread", spread, "must lie between 0 and 3")

    def draw(mean: int) -> int:
        return max(1, round(rng.lognormvariate(0, spread) * mean / 2.718281828 ** (spread**2 / 2)))

    made = []
    for number in range(whole_number("count", count)):
        prompt, output = draw(mean_prompt), draw(mean_output)
        if longest is not None:
            prompt, output = min(prompt, longest), min(output, longest - min(prompt, longest) + 1)
        made.append(StreamRequest(number, number * every, prompt, output))
    return made


def run_stream(
    manager: Manager, requests: Sequence[StreamRequest], *, max_steps: int = 10_000
) -> Iterator[StreamStep]:
    """Serve a stream and yield after every step, until all have finished or nothing can go on.

    The manager must be empty. With blocks, the newest request gives way when none is left, and
    starts again later; with one piece for each there is nothing to give way for.

    >>> from kvlab.paging import BlockManager
    >>> stream = make_stream(4, mean_prompt=20, mean_output=10, spread=0)
    >>> [*run_stream(BlockManager(8, 16), stream)][-1].finished
    4
    """
    run = _Run(manager, sorted(requests, key=lambda r: r.arrives))
    for step in range(max_steps):
        said = [*_advance(run), *_arrive(run, step), *_admit(run)]
        yield _look(run, step, said)
        if not run.coming and not run.running:
            return  # all are done, or the first in the queue will never fit


def _advance(run: _Run) -> list[str]:
    """Give every running request one token; those that are done leave."""
    said: list[str] = []
    for request in list(run.running):
        number = request.number
        if number not in run.written:  # it had to give way to an older one
            continue
        run.written[number] += 1
        run.tokens += 1
        if run.written[number] >= request.output_tokens:
            run.manager.free(number)
            run.running.remove(request)
            run.finished += 1
            said.append(f"{letter(number)} ends")
            continue
        if not run.manager.can_append(number):
            said += _make_room(run, request)
        if number in run.written:
            run.manager.append(number)
    return said


def _make_room(run: _Run, request: StreamRequest) -> Iterator[str]:
    """Let the newest give way until a request can grow, or has given way itself."""
    while not run.manager.can_append(request.number):
        newest, run.preempted = run.running.pop(), run.preempted + 1
        run.manager.free(newest.number)
        run.waiting.insert(0, newest)
        run.tokens -= run.written.pop(newest.number)
        yield f"no block is left: {letter(newest.number)} gives way and will start again"
        if newest is request:
            return


def _arrive(run: _Run, step: int) -> Iterator[str]:
    while run.coming and run.coming[0].arrives <= step:
        request = run.coming.pop(0)
        run.waiting.append(request)
        yield f"{letter(request.number)} comes with {request.prompt_tokens} tokens"


def _admit(run: _Run) -> Iterator[str]:
    while run.waiting and _has_room(run, run.waiting[0]):
        request = run.waiting.pop(0)
        run.manager.allocate(request.number, request.prompt_tokens)
        run.running.append(request)
        run.written[request.number] = 0
        yield f"{letter(request.number)} is admitted"
    if run.waiting:
        yield f"{letter(run.waiting[0].number)} must wait"


def _has_room(run: _Run, request: StreamRequest) -> bool:
    if isinstance(run.manager, ContiguousManager):
        return run.manager.can_allocate(request.prompt_tokens, seq_id=request.number)
    return run.manager.can_allocate(request.prompt_tokens)


def _look(run: _Run, step: int, said: Sequence[str]) -> StreamStep:
    return StreamStep(
        step=step,
        running=tuple(r.number for r in run.running),
        waiting=tuple(r.number for r in run.waiting),
        finished=run.finished,
        preempted=run.preempted,
        tokens_written=run.tokens,
        words="; ".join(said) or "every running request gets one token",
        held=snapshot(run.manager),
    )

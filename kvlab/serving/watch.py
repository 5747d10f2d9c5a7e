"""A server as its operator sees it: gauges, counters and percentiles, look after look.

`timeline` keeps fewer numbers for longer runs; this one also says what the head of the queue waits
for, which no dashboard shows.
"""

import math
from typing import NamedTuple

from kvlab.arithmetic.checks import whole_number
from kvlab.serving.admission import Admission
from kvlab.serving.loop import ServingLoop

NOBODY, SEATS, BLOCKS, BUDGET = "nobody waits", "a seat", "blocks", "the token budget"


class Look(NamedTuple):
    """What one sees after a step. Percentiles are over all that ended, or began, so far.

    `waits_for` is what the head of the queue lacks: one of the words above.
    """

    step: int = 0
    seconds: float = 0.0
    running: int = 0
    waiting: int = 0
    block_use: float = 0.0
    preemptions: int = 0
    refused: int = 0
    ttft_p50: float | None = None
    ttft_p95: float | None = None
    tpot_p50: float | None = None
    tpot_p95: float | None = None
    waits_for: str = NOBODY


class Watch:
    """Looks at a run, at least `every` seconds apart; pass it as `on_step`.

    At `max_looks` every other one is dropped and the distance doubles; the last one is kept.

    >>> Watch(max_looks=10).looks
    []
    """

    def __init__(self, every: float = 0.0, max_looks: int = 240) -> None:
        self.every, self.max_looks = every, whole_number("max_looks", max_looks, minimum=4)
        self.looks: list[Look] = []
        self._is_extra = False  # the last look came too early: the next one takes its place
        self.due = -math.inf  # the second from which on a look is wanted

    def __call__(self, loop: ServingLoop) -> None:
        """Look at a server after a step; where nothing is left to do, in any case."""
        if loop.now >= self.due or not loop.scheduler.has_work:
            self.keep(look(loop))

    def keep(self, seen: Look) -> None:
        """Keep a look: one that is due, or the last one of all."""
        if self._is_extra:
            self.looks.pop()
        self._is_extra = not seen.seconds >= self.due
        self.looks.append(seen)
        if len(self.looks) > self.max_looks:
            del self.looks[1::2]
            span = self.looks[-1].seconds - self.looks[0].seconds
            self.every = max(2 * self.every, span / self.max_looks)
        place = -2 if self._is_extra and len(self.looks) > 1 else -1
        self.due = self.looks[place].seconds + self.every


def look(loop: ServingLoop) -> Look:
    """Return what an operator sees of a server now."""
    scheduler, metrics = loop.scheduler, loop.metrics
    return Look(
        scheduler.counts.steps,
        loop.now,
        len(scheduler.running),
        len(scheduler.waiting),
        scheduler.manager.num_used / scheduler.manager.num_blocks,
        scheduler.counts.preemptions,
        metrics.requests["refused"],
        metrics.ttft.percentile(50),
        metrics.ttft.percentile(95),
        metrics.tpot.percentile(50),
        metrics.tpot.percentile(95),
        waits_for(scheduler),
    )


def waits_for(scheduler: Admission) -> str:
    """Return what the head of the queue lacks; with prefix hits it may need fewer blocks."""
    head = scheduler.waiting.head()
    if head is None:
        return NOBODY
    if scheduler.running_width + head.width > scheduler.limits.max_running:
        return SEATS
    short = scheduler.manager.blocks_for(head.num_tokens) > scheduler.manager.num_free
    return BLOCKS if short or scheduler.head_is_blocked else BUDGET


def at_times(looks: list[Look], count: int) -> list[Look]:
    """Return `count` looks evenly spaced from 0 to the end: the newest one at each time.

    >>> [seen.running for seen in at_times([Look(1, 1.0, 5), Look(2, 4.0, 7)], 5)]
    [0, 5, 5, 5, 7]
    """
    end = looks[-1].seconds if looks else 0.0
    found, place, now = [], 0, Look()
    for index in range(count):
        due = end * index / (count - 1)
        while place < len(looks) and looks[place].seconds <= due * (1 + 1e-12):
            now, place = looks[place], place + 1
        found.append(now._replace(seconds=due))
    return found

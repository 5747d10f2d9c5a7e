"""A run as a few hundred points for a chart, however long it is."""

from typing import NamedTuple

from kvlab.arithmetic.checks import whole_number
from kvlab.serving.loop import ServingLoop


class Point(NamedTuple):
    """One look at a server: a gauge for each of the first four, counters for the others."""

    seconds: float
    running: int
    waiting: int
    block_use: float
    preemptions: int
    generation_tokens: int
    requests_finished: int


class Timeline:
    """Points of a run, at least `every` seconds apart; pass it as `on_step`.

    At `max_points` every other one is dropped and the distance doubles.

    >>> from kvlab.serving.timeline import Timeline
    >>> Timeline(max_points=100).points
    []
    """

    def __init__(self, every: float = 0.0, max_points: int = 600) -> None:
        self.every, self.max_points = every, whole_number("max_points", max_points, minimum=2)
        self.points: list[Point] = []

    def __call__(self, loop: ServingLoop) -> None:
        """Look at a server after a step."""
        if self.points and loop.now < self.points[-1].seconds + self.every:
            return
        self.points.append(look(loop))
        if len(self.points) > self.max_points:
            del self.points[1::2]
            span = self.points[-1].seconds - self.points[0].seconds
            self.every = max(2 * self.every, span / self.max_points)


def look(loop: ServingLoop) -> Point:
    """Return what one sees of a server now."""
    scheduler = loop.scheduler
    return Point(
        loop.now,
        len(scheduler.running),
        len(scheduler.waiting),
        scheduler.manager.num_used / scheduler.manager.num_blocks,
        scheduler.counts.preemptions,
        scheduler.counts.generation_tokens,
        loop.metrics.requests_finished,
    )

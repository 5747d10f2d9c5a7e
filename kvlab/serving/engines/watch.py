"""Looks at an engine's metrics again and again while it works, into points of a timeline."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.faults import NoAnswer
from kvlab.serving.engines.readings import Readings, read_metrics
from kvlab.serving.engines.served import MemoryLook
from kvlab.serving.timeline import Point

MOST_POINTS = 2000


class Watch:
    """A thread that looks every `every` seconds; `points` and `memory` are what it saw.

    At `MOST_POINTS` every other point is dropped and the distance doubles.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        every: float = 0.25,
        rss_bytes: Callable[[], int | None] | None = None,
    ) -> None:
        self.endpoint, self.every, self.rss_bytes = endpoint, every, rss_bytes
        self.points: list[Point] = []
        self.memory: list[MemoryLook] = []

    def look(self) -> Readings:
        """Return what the metrics endpoint says now. Raises `NoAnswer`."""
        reply = self.endpoint.get("/metrics")
        found = read_metrics(reply.text) if reply.status == 200 else None
        if found is None:
            raise NoAnswer(f"{self.endpoint.base}/metrics", "holds no metrics of an engine")
        return found

    @contextmanager
    def running(self, started: float) -> Iterator[None]:
        """Look until the block ends; seconds count from `started` (of `time.monotonic`)."""
        done = threading.Event()
        thread = threading.Thread(target=self._run, args=(started, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(timeout=15)

    def _run(self, started: float, done: threading.Event) -> None:
        while not done.is_set():
            try:
                point = self.look().point(time.monotonic() - started)
            except NoAnswer:  # busy: the next look may do
                done.wait(self.every)
                continue
            self.points.append(point)
            size = self.rss_bytes() if self.rss_bytes is not None else None
            if size is not None:
                self.memory.append(MemoryLook(point.seconds, size, point.block_use))
            if len(self.points) > MOST_POINTS:
                del self.points[1::2], self.memory[1::2]
                self.every *= 2
            done.wait(self.every)

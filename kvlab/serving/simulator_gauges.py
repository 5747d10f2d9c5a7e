"""What a quick simulation keeps of its run: the looks of a `Watch` and the sums of `Metrics`."""

from bisect import insort
from collections.abc import Sequence

from kvlab.serving.simulator_traffic import Outcome
from kvlab.serving.watch import Look, Watch


class Gauges:
    """Times and sums of a run; a request is named by its place in the order of arrival.

    The times of first tokens and of tokens are kept in order, so a percentile is one of them.
    """

    def __init__(self, arrivals: Sequence[float], num_blocks: int, watch: Watch) -> None:
        self.arrivals, self.num_blocks, self.watch = arrivals, num_blocks, watch
        self.first_at = [0.0] * len(arrivals)
        self.ttft: list[float] = []
        self.tpot: list[float] = []
        self._percentiles: tuple[float | None, ...] | None = None  # None: not since the last time
        self.finished = self.refused = self.outgrown = self.delivered = self.preemptions = 0
        self.busy = self.batch_seconds = self.makespan = 0.0

    def saw_first_token(self, i: int, now: float) -> None:
        """Note when a request got its first token."""
        self.first_at[i] = now
        insort(self.ttft, now - self.arrivals[i])
        self._percentiles = None

    def saw_end(self, i: int, written: int, now: float) -> None:
        """Note when a request got the last of its `written` tokens."""
        self.finished += 1
        self.delivered += written
        self.makespan = now
        if written > 1:
            insort(self.tpot, (now - self.first_at[i]) / (written - 1))
            self._percentiles = None

    def saw_refused(self, now: float) -> None:
        """Count a request that could never run."""
        self.refused += 1
        self.makespan = now

    def saw_outgrown(self, count: int, now: float) -> None:
        """Count requests that outgrew the pool."""
        if count:
            self.outgrown += count
            self.makespan = now

    def look(
        self, step: int, now: float, running: int, waiting: int, free: int, waits_for: str
    ) -> None:
        """Keep what an operator sees now."""
        if self._percentiles is None:
            self._percentiles = *_percentiles(self.ttft), *_percentiles(self.tpot)
        use = (self.num_blocks - free) / self.num_blocks
        seen = (step, now, running, waiting, use, self.preemptions, self.refused)
        self.watch.keep(Look._make((*seen, *self._percentiles, waits_for)))

    def told(self, recomputed: int, swapped_out: int) -> Outcome:
        """Return what is known at the end."""
        return Outcome(
            self.watch.looks,
            self.finished,
            self.refused,
            self.outgrown,
            self.batch_seconds / self.busy if self.busy else 0.0,
            self.delivered / self.makespan if self.makespan else 0.0,
            recomputed,
            swapped_out,
        )


def _percentiles(ordered: list[float]) -> tuple[float | None, float | None]:
    """Return p50 and p95 as `Quantiles.percentile` does."""
    if not ordered:
        return None, None
    count = len(ordered)
    return ordered[-(-50 * count // 100) - 1], ordered[-(-95 * count // 100) - 1]

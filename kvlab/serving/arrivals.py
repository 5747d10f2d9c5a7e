"""Requests that are still to come, in the order of their arrival, and those that grew impatient."""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from kvlab.errors import InvalidArgument
from kvlab.serving.request import Request


class Arrivals:
    """The next arrivals: from an iterator, of which one is looked at ahead, and follow-ups.

    >>> coming = Arrivals([Request(1, 5, 5, arrival_seconds=2.0)])
    >>> coming.follow(Request(2, 5, 5, arrival_seconds=1.0))
    >>> coming.next_time, [request.request_id for request in coming.until(3.0)]
    (1.0, [2, 1])
    """

    def __init__(self, requests: Iterable[Request]) -> None:
        self._rest = iter(requests)
        self._heap: list[tuple[float, int, Request]] = []
        self._count = 0
        self._last = 0.0
        self._ahead: Request | None = None
        self._look()

    @property
    def next_time(self) -> float | None:
        """When the next request arrives; None: none will."""
        times = [self._heap[0][0]] if self._heap else []
        if self._ahead is not None:
            times.append(self._ahead.arrival_seconds)
        return min(times, default=None)

    def follow(self, request: Request) -> None:
        """Add a request that nobody could know before."""
        heappush(self._heap, (request.arrival_seconds, self._count, request))
        self._count += 1

    def until(self, now: float) -> Iterator[Request]:
        """Yield, and take out, all that have arrived by `now`."""
        while (due := self.next_time) is not None and due <= now:
            if self._ahead is not None and self._ahead.arrival_seconds == due:
                yield self._ahead
                self._look()
            else:
                yield heappop(self._heap)[2]

    def _look(self) -> None:
        self._ahead = next(self._rest, None)
        if self._ahead is None:
            return
        if self._ahead.arrival_seconds < self._last:
            rule = f"requests must come in the order of arrival; {self._last} came before"
            raise InvalidArgument("arrival_seconds", self._ahead.arrival_seconds, rule)
        self._last = self._ahead.arrival_seconds


class Deadlines:
    """When live requests give up, soonest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []

    @property
    def next_time(self) -> float | None:
        """When the next request gives up, unless it has ended; None: none will."""
        return self._heap[0][0] if self._heap else None

    def watch(self, request: Request) -> None:
        """Remember when a request gives up, if it ever does."""
        if request.timeout_seconds is not None:
            due = request.arrival_seconds + request.timeout_seconds
            heappush(self._heap, (due, request.request_id))

    def passed(self, now: float) -> Iterator[int]:
        """Yield, and forget, the requests that have given up by `now`."""
        while self._heap and self._heap[0][0] <= now:
            yield heappop(self._heap)[1]

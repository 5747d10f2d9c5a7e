"""The waiting queue: who is next, first come first served or by priority.

Only the head is ever tried. Nobody overtakes it, so nobody starves behind smaller requests of the
same priority.
"""

from heapq import heappop, heappush

from kvlab.errors import InvalidArgument
from kvlab.serving.request import Request
from kvlab.serving.sequence import WAITING, Key, Sequence

FCFS, PRIORITY = "fcfs", "priority"
POLICIES = (FCFS, PRIORITY)


def order_key(policy: str, request: Request, number: int, sample: int = 0) -> Key:
    """Return what requests are ordered by: the lower key is served first and preempted last.

    `number` counts requests as they arrive.

    >>> order_key("priority", Request(1, 10, 10, priority=-2), number=5)
    (-2, 5, 0)
    """
    if policy not in POLICIES:
        raise InvalidArgument("policy", policy, f"must be one of {', '.join(POLICIES)}")
    return (request.priority if policy == PRIORITY else 0), number, sample


class WaitingQueue:
    """Sequences in the order of their keys; one that was aborted is passed over.

    >>> queue = WaitingQueue()
    >>> queue.push(Sequence(1, Request(1, 10, 10), key=(0, 1, 0)))
    >>> queue.push(Sequence(0, Request(0, 10, 10), key=(0, 0, 0)))
    >>> queue.head().seq_id, len(queue)
    (0, 2)
    """

    __slots__ = ("_heap", "_size")

    def __init__(self) -> None:
        self._heap: list[tuple[Key, Sequence]] = []
        self._size = 0

    def push(self, seq: Sequence) -> None:
        """Let a sequence wait; one that was preempted gets back to its old place."""
        seq.state = WAITING
        heappush(self._heap, (seq.key, seq))
        self._size += 1

    def head(self) -> Sequence | None:
        """Return the sequence that is next, or None."""
        heap = self._heap
        while heap and heap[0][1].state != WAITING:
            heappop(heap)
        return heap[0][1] if heap else None

    def pop(self) -> Sequence:
        """Take out the head."""
        self.head()
        self._size -= 1
        return heappop(self._heap)[1]

    def forget(self, seq: Sequence) -> None:
        """Count one that was taken out from the middle; its state says that it waits no more."""
        self._size -= 1

    def __len__(self) -> int:
        return self._size

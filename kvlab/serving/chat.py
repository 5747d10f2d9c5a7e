"""Conversations: each turn repeats all that was said before, and comes after the last answer.

So the traffic depends on the server: a slow answer delays the next question.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

from kvlab.arithmetic.checks import whole_number
from kvlab.serving.lengths import Lengths, parse_lengths
from kvlab.serving.request import Request
from kvlab.serving.sequence import Sequence
from kvlab.serving.workloads import OWN_IDS, stream

MakeIds = Callable[[int, int], list[int]]


def own_ids(request_id: int, count: int) -> list[int]:
    """Return `count` made-up token ids that no other request has."""
    start = (request_id + 1) * OWN_IDS
    return list(range(start, start + count))


@dataclass
class Chat:
    """`conversations` of `turns` turns each; iterating gives the first turns.

    A turn is a system prompt that all share, the talk so far, and a new message; the next one
    follows `think_seconds` after the answer is complete.

    >>> chat = Chat(2, 3, system_tokens=20, message_tokens=10, output_tokens=5)
    >>> [request.prompt_tokens for request in chat], chat.num_requests
    ([30, 30], 6)
    """

    conversations: int
    turns: int
    system_tokens: int = 0
    message_tokens: "str | int | Lengths" = 50
    output_tokens: "str | int | Lengths" = 50
    think_seconds: float = 5.0
    arrivals: Iterable[float] | None = None
    seed: int = 0
    make_ids: MakeIds = own_ids

    def __post_init__(self) -> None:
        whole_number("conversations", self.conversations)
        whole_number("turns", self.turns)
        whole_number("system_tokens", self.system_tokens, minimum=0)
        self._messages = parse_lengths("message_tokens", self.message_tokens)
        self._outputs = parse_lengths("output_tokens", self.output_tokens)

    @property
    def num_requests(self) -> int:
        """Requests of all conversations."""
        return self.conversations * self.turns

    def __iter__(self) -> Iterator[Request]:
        times = repeat(0.0) if self.arrivals is None else iter(self.arrivals)
        system = self.make_ids(-1, self.system_tokens)
        for number, seconds in zip(range(self.conversations), times, strict=False):
            yield self._turn(number, system, seconds)

    def follow_up(self, seq: Sequence, now: float) -> Request | None:
        """Return what a user asks next, once `seq` has ended at the second `now`; None: nothing."""
        number = seq.request.request_id + self.conversations
        if number >= self.num_requests or seq.error is not None or seq.token_ids is None:
            return None
        return self._turn(number, seq.token_ids, now + self.think_seconds)

    def _turn(self, number: int, history: list[int], seconds: float) -> Request:
        # A stream for each turn: lengths must not depend on whose answer came first.
        rng = stream(self.seed, f"turn {number}")
        message = self.make_ids(number, self._messages.draw(rng, number))
        ids = [*history, *message]
        output = self._outputs.draw(rng, number)
        return Request(number, len(ids), output, arrival_seconds=seconds, prompt_ids=ids)

"""One trace of requests for two block managers: who comes, how long it is, what it shares.

The trace is plain data. Both drivers (`allocator_ours`, `allocator_nano`) play it the same way:
admit while there are places, one token a step for all that run, free whoever is done.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number


@dataclass(frozen=True)
class TraceRequest:
    """One request: the ids of its prompt, and how many tokens it will emit."""

    prompt_ids: list[int]
    new_tokens: int


@dataclass(frozen=True)
class Trace:
    """Requests in the order in which they come, and the pool that serves them.

    `running` is the most sequences at once, `batch_tokens` the budget of a scheduler's step. The
    blocks are enough for all that run, so nobody has to give way; idle ones are evicted one day.
    """

    requests: list[TraceRequest]
    block_size: int
    num_blocks: int
    running: int
    batch_tokens: int = 16_384

    @property
    def new_tokens(self) -> int:
        """Tokens emitted over all requests: the decode operations of the trace."""
        return sum(request.new_tokens for request in self.requests)


@dataclass(frozen=True)
class Played:
    """What a block manager did with a trace: seconds, prompt tokens asked for and found cached."""

    seconds: float
    asked_tokens: int
    hit_tokens: int

    @property
    def hit_share(self) -> float:
        """Share of the prompt tokens that were found in the pool.

        >>> Played(1.0, asked_tokens=200, hit_tokens=50).hit_share
        0.25
        """
        return self.hit_tokens / self.asked_tokens if self.asked_tokens else 0.0


def make_trace(
    num_requests: int = 300,
    *,
    block_size: int = 256,
    running: int = 64,
    prefix_tokens: int = 512,
    num_prefixes: int = 4,
    seed: int = 0,
) -> Trace:
    """Return a trace: prompts that begin with one of a few common texts, answers of any length.

    Prompts have 32 to 1,536 tokens after the common text, answers 64 to 256. The same arguments
    give the same trace.

    >>> trace = make_trace(3, block_size=16, seed=1)
    >>> len(trace.requests), trace.num_blocks, trace.new_tokens
    (3, 9216, 432)
    """
    rng = random.Random(f"trace {whole_number('seed', seed, minimum=0)}")
    texts = [_ids(rng, prefix_tokens) for _ in range(whole_number("num_prefixes", num_prefixes))]
    requests = []
    for _ in range(whole_number("num_requests", num_requests)):
        prompt = rng.choice(texts) + _ids(rng, rng.randint(32, 1536))
        requests.append(TraceRequest(prompt, rng.randint(64, 256)))
    longest = prefix_tokens + 1536 + 256
    blocks = whole_number("running", running) * -(-longest // block_size)
    return Trace(requests, block_size, blocks, running)


def _ids(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(50_000) for _ in range(count)]

"""Traffic made to order: when requests arrive, how long they are, and what they share.

All draws come from a seed: the same arguments give the same requests, on every machine. Requests
are made one at a time, so a long run needs no memory for those to come. Left out: what a server
does with them. Conversations are in `chat`, recorded traffic in `trace`.
"""

import math
import random
from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.serving.lengths import Lengths, parse_lengths
from kvlab.serving.request import Request

OWN_IDS = 1 << 32
"""Made-up token ids from here on belong to one request alone; those below are shared text."""


def stream(seed: int, name: str) -> random.Random:
    """Return a generator of its own for one kind of draw, so that kinds don't disturb each other.

    >>> stream(1, "arrivals").random() == stream(1, "arrivals").random()
    True
    """
    return random.Random(f"{whole_number('seed', seed, minimum=0)} {name}")


def poisson_arrivals(rate: float, seed: int = 0, start: float = 0.0) -> Iterator[float]:
    """Yield arrival times, in seconds, of `rate` requests a second on average; "inf": all at once.

    >>> [round(seconds, 2) for _, seconds in zip(range(3), poisson_arrivals(2, seed=1))]
    [0.41, 0.98, 1.6]
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0:
        raise InvalidArgument("rate", rate, "must be above 0 requests a second")
    return repeat(start) if math.isinf(rate) else _gaps(rate, stream(seed, "arrivals"), start)


def _gaps(rate: float, rng: random.Random, now: float) -> Iterator[float]:
    while True:
        now += rng.expovariate(rate)
        yield now


def burst_arrivals(rate: float, *, at: float, size: int, seed: int = 0) -> Iterator[float]:
    """Yield Poisson arrivals, and `size` more at the second `at`: a crowd at the door.

    >>> times = burst_arrivals(1, at=5.0, size=3, seed=1)
    >>> [seconds for _, seconds in zip(range(20), times)].count(5.0)
    3
    """
    whole_number("size", size)
    calm = poisson_arrivals(rate, seed)
    for seconds in calm:
        if seconds > at:
            yield from chain(repeat(at, size), (seconds,), calm)
        yield seconds


def make_requests(
    count: int,
    *,
    prompt_tokens: "str | int | Lengths",
    output_tokens: "str | int | Lengths",
    arrivals: Iterable[float] | None = None,
    prefix_share: float = 0.0,
    max_new_tokens: int | None = None,
    seed: int = 0,
) -> Iterator[Request]:
    """Yield `count` requests, numbered from 0, in the order of `arrivals` (None: all at 0).

    Lengths are what `parse_lengths` takes. `prefix_share`, 0 to 1, is the share of each prompt
    that is the start of one common text, such as a system prompt; the rest is its own.
    `max_new_tokens` is the limit that users state; without it they state the true length.

    >>> requests = list(make_requests(3, prompt_tokens=100, output_tokens="uniform:5:9", seed=1))
    >>> [(r.prompt_tokens, r.max_new_tokens) for r in requests]
    [(100, 5), (100, 5), (100, 6)]
    """
    if not 0 <= prefix_share <= 1:
        raise InvalidArgument("prefix_share", prefix_share, "must be from 0 to 1")
    prompts = parse_lengths("prompt_tokens", prompt_tokens)
    outputs = parse_lengths("output_tokens", output_tokens)
    times = repeat(0.0) if arrivals is None else iter(arrivals)
    return _made(
        whole_number("count", count), prompts, outputs, times, prefix_share, max_new_tokens, seed
    )


def _made(
    count: int,
    prompts: Lengths,
    outputs: Lengths,
    times: Iterator[float],
    prefix_share: float,
    limit: int | None,
    seed: int,
) -> Iterator[Request]:
    prompt_rng, output_rng = stream(seed, "prompts"), stream(seed, "outputs")
    for index, seconds in zip(range(count), times, strict=False):
        length, output = prompts.draw(prompt_rng, index), outputs.draw(output_rng, index)
        shared = int(length * prefix_share)
        yield Request(
            index,
            length,
            output if limit is None else limit,
            arrival_seconds=seconds,
            prompt_ids=shared_prompt_ids(index, length, shared) if shared else None,
            output_tokens=None if limit is None else output,
        )


def shared_prompt_ids(index: int, length: int, shared: int) -> list[int]:
    """Return made-up token ids of which the first `shared` are common to all requests.

    >>> shared_prompt_ids(0, 4, 2)[:2] == shared_prompt_ids(1, 4, 2)[:2] == [0, 1]
    True
    """
    own = (index + 1) * OWN_IDS
    return [*range(shared), *range(own + shared, own + length)]


def with_system_prompt(
    count: int, *, system_tokens: int, user_tokens: "str | int | Lengths",
    output_tokens: "str | int | Lengths", arrivals: Iterable[float] | None = None, seed: int = 0,
) -> Iterator[Request]:  # fmt: skip
    """Yield requests that all begin with the same `system_tokens` tokens.

    >>> first, second = with_system_prompt(2, system_tokens=48, user_tokens=10, output_tokens=5)
    >>> first.prompt_ids[:48] == second.prompt_ids[:48], first.prompt_tokens
    (True, 58)
    """
    system = whole_number("system_tokens", system_tokens)
    users = parse_lengths("user_tokens", user_tokens)
    outputs = parse_lengths("output_tokens", output_tokens)
    times = repeat(0.0) if arrivals is None else iter(arrivals)
    user_rng, output_rng = stream(seed, "prompts"), stream(seed, "outputs")
    for index, seconds in zip(range(whole_number("count", count)), times, strict=False):
        length = system + users.draw(user_rng, index)
        ids = shared_prompt_ids(index, length, system)
        yield Request(
            index, length, outputs.draw(output_rng, index), arrival_seconds=seconds, prompt_ids=ids
        )

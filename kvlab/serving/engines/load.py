"""Sends requests to an engine on this machine and notes when each token comes back.

A thread for each request that is open; all are bounded in number and in time. Between them a watch
looks at the engine's metrics. Interrupting it cuts every connection, so the engine stops too.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, KvlabError
from kvlab.serving.engines.clients import CLIENTS, prompt_ids
from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.served import Load, ServedAnswer
from kvlab.serving.engines.watch import Watch
from kvlab.serving.request import Request

MOST_REQUESTS = 1000
MOST_OPEN = 64


@dataclass
class _Round:
    """What all threads of one load share."""

    endpoint: Endpoint
    engine: str
    model: str
    started: float
    deadline: float
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def now(self) -> float:
        """Seconds since the load began."""
        return time.monotonic() - self.started


def send_load(
    endpoint: Endpoint,
    engine: str,
    model: str,
    requests: Iterable[Request],
    *,
    name: str = "load",
    max_seconds: float = 300.0,
    at_once: int = MOST_OPEN,
    watch_every: float = 0.25,
    rss_bytes: Callable[[], int | None] | None = None,
    on_answer: Callable[[ServedAnswer], None] | None = None,
) -> Load:
    """Send all requests at their arrival times, at most `at_once` open, and return what came back.

    After `max_seconds` what is still open is aborted. `engine` is "vllm" or "llamacpp". Raises
    `InvalidArgument` for an address elsewhere than on this machine, and for too many requests.
    """
    asked = _checked(endpoint, requests)
    whole_number("at_once", at_once)
    watch = Watch(endpoint, every=watch_every, rss_bytes=rss_bytes)
    before = watch.look()
    shared = _Round(endpoint, engine, model, time.monotonic(), max_seconds)
    with watch.running(shared.started), ThreadPoolExecutor(min(at_once, MOST_OPEN)) as pool:
        try:
            answers = _collect(pool, shared, asked, on_answer)
        except BaseException:
            shared.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        seconds = shared.now
    after = watch.look()
    points = (*watch.points, after.point(seconds))
    return Load(name, asked, answers, points, before, after, seconds, tuple(watch.memory))


def _checked(endpoint: Endpoint, requests: Iterable[Request]) -> tuple[Request, ...]:
    """Return the requests; a wrong one is named before anything is sent."""
    asked = tuple(requests)
    if not endpoint.is_here:
        rule = "a load is sent to this machine alone (127.0.0.1)"
        raise InvalidArgument("endpoint", endpoint.base, rule)
    if not 1 <= len(asked) <= MOST_REQUESTS:
        raise InvalidArgument("requests", len(asked), f"must be 1 to {MOST_REQUESTS:,}")
    for request in asked:
        prompt_ids(request)
    return asked


def _collect(
    pool: ThreadPoolExecutor,
    shared: _Round,
    asked: tuple[Request, ...],
    on_answer: Callable[[ServedAnswer], None] | None,
) -> dict[int, ServedAnswer]:
    """Send everything; return the answers by request, in the order of the requests."""
    answers = {}
    for future in as_completed([pool.submit(_one, shared, request) for request in asked]):
        answer = future.result()
        answers[answer.request_id] = answer
        if on_answer is not None:
            on_answer(answer)
    return {request.request_id: answers[request.request_id] for request in asked}


def _one(shared: _Round, request: Request) -> ServedAnswer:
    """Wait for a request's arrival, send it, and take in its tokens."""
    shared.stop.wait(max(0.0, request.arrival_seconds - shared.now))
    sent, ids, times, texts = shared.now, list[int](), list[float](), list[str]()
    reason, error, cached, timings = "aborted", None, None, {}
    left = shared.deadline - sent
    if left <= 0 or shared.stop.is_set():
        return ServedAnswer(request.request_id, request.prompt_tokens, (), reason, _late(shared))
    stream = CLIENTS[shared.engine](shared.endpoint, shared.model, request, left)
    try:
        for piece in stream:
            times += [shared.now] * len(piece.token_ids)
            ids += piece.token_ids
            texts.append(piece.text)
            cached = cached if piece.cached_tokens is None else piece.cached_tokens
            timings = piece.timings or timings
            reason = piece.end_reason or reason
            if shared.stop.is_set():
                break
        if reason == "aborted":
            error = _late(shared) or "the answer broke off"
    except KvlabError as fault:
        reason = "aborted" if shared.now >= shared.deadline else "failed"
        error = str(fault)
    finally:
        stream.close()
    return ServedAnswer(
        request.request_id, request.prompt_tokens, tuple(ids), reason, error, sent, tuple(times),
        "".join(texts), cached, timings,
    )  # fmt: skip


def _late(shared: _Round) -> str | None:
    return f"not done after {shared.deadline:g} s" if shared.now >= shared.deadline else None

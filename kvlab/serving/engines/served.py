"""What a load of requests got from an engine: answers with their times, and the metrics beside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kvlab.serving.engines.readings import Readings
from kvlab.serving.metrics import DONE, Metrics
from kvlab.serving.request import Request
from kvlab.serving.timeline import Point

FINISHED = ("length", "stop")


class MemoryLook(NamedTuple):
    """One look at memory: resident bytes of the engine, and the share of its pool in use."""

    seconds: float
    rss_bytes: int
    block_use: float


@dataclass(frozen=True)
class ServedAnswer:
    """One answer as a client saw it; times are in seconds since the load began.

    `token_at` has a time for each token. `end_reason` is "length" or "stop", else "aborted" or
    "failed", and then `error` says why. `cached_tokens` is None where the engine does not say it.
    """

    request_id: int
    prompt_tokens: int
    token_ids: tuple[int, ...]
    end_reason: str
    error: str | None = None
    sent_at: float = 0.0
    token_at: tuple[float, ...] = field(default=(), repr=False)
    text: str = ""
    cached_tokens: int | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def ttft(self) -> float | None:
        """Seconds from sending to the first token; None without any."""
        return self.token_at[0] - self.sent_at if self.token_at else None

    @property
    def tpot(self) -> float | None:
        """Mean seconds between one token and the next; None for fewer than two."""
        if len(self.token_at) < 2:
            return None
        return (self.token_at[-1] - self.token_at[0]) / (len(self.token_at) - 1)

    @property
    def gaps(self) -> tuple[float, ...]:
        """Seconds between each token and the next."""
        return tuple(b - a for a, b in zip(self.token_at, self.token_at[1:], strict=False))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for a file; times in whole milliseconds."""
        return {
            "request_id": self.request_id,
            "prompt_tokens": self.prompt_tokens,
            "token_ids": list(self.token_ids),
            "end_reason": self.end_reason,
            "error": self.error,
            "sent_ms": round(self.sent_at * 1000),
            "token_ms": [round(t * 1000) for t in self.token_at],
            "text": self.text,
            "cached_tokens": self.cached_tokens,
            "timings": dict(self.timings),
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> "ServedAnswer":
        """Return the answer that a file holds."""
        return cls(
            row["request_id"], row["prompt_tokens"], tuple(row["token_ids"]), row["end_reason"],
            row["error"], row["sent_ms"] / 1000, tuple(t / 1000 for t in row["token_ms"]),
            row["text"], row["cached_tokens"], row["timings"],
        )  # fmt: skip


@dataclass(frozen=True)
class Load:
    """Requests that were sent together, their answers, and what the engine said meanwhile."""

    name: str
    requests: tuple[Request, ...]
    answers: dict[int, ServedAnswer]
    points: tuple[Point, ...]
    before: Readings
    after: Readings
    seconds: float
    memory: tuple[MemoryLook, ...] = ()

    @property
    def rises(self) -> dict[str, float]:
        """How far each counter of the engine rose, by its vLLM name."""
        return self.after.since(self.before)

    @property
    def preemptions(self) -> int:
        """How often a request gave way."""
        return int(self.rises.get("vllm:num_preemptions_total", 0))

    @property
    def hit_tokens(self) -> int:
        """Prompt tokens that were found in the cache."""
        return int(self.rises.get("vllm:prefix_cache_hits_total", 0))

    @property
    def tokens_per_second(self) -> float:
        """Tokens written, for each second of the load."""
        written = sum(len(answer.token_ids) for answer in self.answers.values())
        return written / self.seconds if self.seconds else 0.0

    @property
    def token_ids(self) -> dict[int, tuple[int, ...]]:
        """What each request got, to be compared with another run."""
        return {number: answer.token_ids for number, answer in sorted(self.answers.items())}

    def peak_blocks_of(self, request_id: int) -> float:
        """Return the most blocks that any look saw in use while a request was open.

        For one that was alone these are its own; a look may miss the last one.
        """
        answer, blocks = self.answers[request_id], self.before.num_blocks or 1
        last = answer.token_at[-1] if answer.token_at else self.seconds
        seen = [p.block_use for p in self.points if answer.sent_at <= p.seconds <= last]
        return max(seen, default=0.0) * (blocks - 1)

    def metrics(self) -> Metrics:
        """Return the load as our own server's metrics: the same object, filled by a client."""
        made = Metrics()
        for answer in self.answers.values():
            done = answer.end_reason in FINISHED
            made.requests[DONE if done else answer.end_reason] += 1
            if answer.ttft is not None:
                made.ttft.add(answer.ttft)
            if done and answer.tpot is not None:
                made.tpot.add(answer.tpot)
            if done:
                made.tokens_delivered += len(answer.token_ids)
            if answer.error is not None:
                made.errors.append(answer.error)
        made.peak_running = max((p.running for p in self.points), default=0)
        made.peak_waiting = max((p.waiting for p in self.points), default=0)
        made.makespan = self.seconds
        return made

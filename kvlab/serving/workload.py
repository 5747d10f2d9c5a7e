"""A workload as a terminal or a widget describes it: checked once, started as often as liked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.serving.lengths import Column, Lengths, describe, parse_lengths
from kvlab.serving.request import Request
from kvlab.serving.trace import is_trace, read_arrivals, read_trace
from kvlab.serving.workloads import make_requests, poisson_arrivals

MOST_REQUESTS = 10**7


@dataclass(frozen=True)
class Workload:
    """So many requests, their lengths, and their arrivals: at a rate, or when a trace says.

    Each iteration gives the same requests again.

    >>> work = Workload.of(requests=3, rate=2, prompt_tokens="uniform:5:9", output_tokens=4, seed=1)
    >>> list(work) == list(work), [request.prompt_tokens for request in work]
    (True, [6, 5, 8])
    """

    count: int
    prompts: Lengths
    outputs: Lengths
    rate: float | None
    times: tuple[float, ...]
    priorities: tuple[int, ...]
    prefix_share: float
    seed: int

    @classmethod
    def of(
        cls,
        *,
        prompt_tokens: "str | int | Lengths",
        output_tokens: "str | int | Lengths",
        requests: int | None = None,
        rate: float | None = None,
        prefix_share: float = 0.0,
        seed: int = 0,
    ) -> "Workload":
        """Check every part by name. What is left out, `requests` or `rate`, a trace must say."""
        prompts = parse_lengths("prompt_tokens", prompt_tokens)
        outputs = parse_lengths("output_tokens", output_tokens)
        traces = [str(t) for t in (prompt_tokens, output_tokens) if is_trace(str(t))]
        count = _rows_of(prompts, outputs) if requests is None else requests
        if isinstance(count, int) and count > MOST_REQUESTS:
            rule = f"must be {MOST_REQUESTS:,} or fewer: more would take hours"
            raise InvalidArgument("requests", count, rule)
        times = () if rate is not None else _recorded_times(traces, count)
        both = len(traces) == 2 and traces[0] == traces[1]
        priorities = tuple(row.priority for row in read_trace(traces[0])) if both else ()
        made = cls(
            whole_number("requests", count), prompts, outputs, rate, times, priorities,
            prefix_share, seed,
        )  # fmt: skip
        next(iter(made))  # a wrong rate, share or seed is named now
        return made

    def __iter__(self) -> Iterator[Request]:
        arrivals = self.times if self.rate is None else poisson_arrivals(self.rate, self.seed)
        made = make_requests(
            self.count,
            prompt_tokens=self.prompts,
            output_tokens=self.outputs,
            arrivals=arrivals,
            prefix_share=self.prefix_share,
            seed=self.seed,
        )
        return self._with_priorities(made) if self.has_priorities else made

    def _with_priorities(self, made: Iterator[Request]) -> Iterator[Request]:
        for request in made:
            yield replace(
                request, priority=self.priorities[request.request_id % len(self.priorities)]
            )

    @property
    def has_priorities(self) -> bool:
        """Whether a trace gave any request a priority other than 0."""
        return any(self.priorities)

    @property
    def typical_tokens(self) -> int:
        """Tokens of a request of mean length, prompt and answer."""
        return max(1, round(self.prompts.mean + self.outputs.mean))

    def describe(self) -> dict[str, Any]:
        """Return the parts in words, for a report."""
        arriving = "all at once" if self.rate == float("inf") else f"{self.rate} a second"
        return {
            "requests": self.count,
            "arrivals": "as the trace says" if self.rate is None else arriving,
            "prompt_tokens": describe(self.prompts),
            "output_tokens": describe(self.outputs),
            "prefix_share": self.prefix_share,
            "seed": self.seed,
        }


def _rows_of(prompts: Lengths, outputs: Lengths) -> int:
    """Return how many requests the traces hold; two that differ are not cut without a word."""
    rows = [len(lengths.tokens) for lengths in (prompts, outputs) if isinstance(lengths, Column)]
    if not rows:
        raise InvalidArgument("requests", None, "say how many, or give a trace")
    if len(set(rows)) > 1:
        rule = f"the traces have {rows[0]:,} prompts and {rows[1]:,} answers: say how many"
        raise InvalidArgument("requests", None, rule)
    return rows[0]


def _recorded_times(traces: list[str], count: int) -> tuple[float, ...]:
    """Return the arrival times of the first trace that has them."""
    for trace in traces:
        times = read_arrivals(trace)
        if times is not None:
            if len(times) < count:
                raise InvalidArgument("requests", count, f"the trace has {len(times):,} arrivals")
            return tuple(times)
    raise InvalidArgument("rate", None, "say it, or give a trace with arrival_seconds")

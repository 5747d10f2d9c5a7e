"""What a user asks a server for, and how its tokens are chosen; nothing here changes later.

Left out: where the request stands while it is served (`sequence`).
"""

from collections.abc import Sequence as Items
from dataclasses import dataclass, field

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.plan_checks import positive
from kvlab.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen: temperature 0 is greedy. Sample i of a request draws with seed + i."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0


GREEDY = Sampling()


@dataclass(frozen=True, slots=True)
class Request:
    """One request: a prompt, known by its tokens or by its length alone, and its limits.

    `num_samples` answers are written from one prefill. `output_tokens` says after how many tokens
    the model stops by itself, for a run without a model; `written_ids`, one list for each sample,
    are the tokens of an earlier run, replayed. A lower `priority` is served first. Whoever has
    waited `timeout_seconds` for the whole answer gives up. `salt` keeps tenants' blocks apart.

    >>> Request(7, prompt_tokens=100, max_new_tokens=20).peak_tokens
    119
    """

    request_id: int
    prompt_tokens: int
    max_new_tokens: int
    arrival_seconds: float = 0.0
    prompt_ids: Items[int] | None = field(default=None, repr=False)
    priority: int = 0
    num_samples: int = 1
    stop_ids: frozenset[int] = frozenset()
    output_tokens: int | None = None
    written_ids: Items[Items[int]] | None = field(default=None, repr=False)
    sampling: Sampling = GREEDY
    salt: str | None = None
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        whole_number("prompt_tokens", self.prompt_tokens)
        whole_number("max_new_tokens", self.max_new_tokens)
        whole_number("num_samples", self.num_samples)
        if self.output_tokens is not None:
            whole_number("output_tokens", self.output_tokens)
        if self.prompt_ids is not None and len(self.prompt_ids) != self.prompt_tokens:
            rule = f"must be {self.prompt_tokens}, the prompt_tokens"
            raise InvalidArgument("number of prompt_ids", len(self.prompt_ids), rule)
        if self.written_ids is not None and len(self.written_ids) != self.num_samples:
            rule = f"must be {self.num_samples}, one list for each sample"
            raise InvalidArgument("number of written_ids", len(self.written_ids), rule)
        if not 0 <= self.arrival_seconds < float("inf"):
            rule = "must be a finite number of 0 or more"
            raise InvalidArgument("arrival_seconds", self.arrival_seconds, rule)
        if self.timeout_seconds is not None:
            positive("timeout_seconds", self.timeout_seconds)

    @property
    def peak_tokens(self) -> int:
        """Most tokens of one sample in the cache: the last one emitted is never fed back."""
        return self.prompt_tokens + self.max_new_tokens - 1


def prompt(
    request_id: int, prompt_ids: Items[int], max_new_tokens: int, **limits: object
) -> Request:
    """Return a request for a prompt whose tokens are known.

    >>> prompt(1, [5, 6, 7], 4).prompt_tokens
    3
    """
    ids = list(prompt_ids)
    return Request(request_id, len(ids), max_new_tokens, prompt_ids=ids, **limits)  # type: ignore[arg-type]

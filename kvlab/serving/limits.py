"""What a scheduler may do: how much work in a step, how many requests, and what to do when full."""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.serving.queue import FCFS, POLICIES

RECOMPUTE, SWAP = "recompute", "swap"
PREEMPTIONS = (RECOMPUTE, SWAP)


@dataclass(frozen=True, slots=True)
class Limits:
    """The rules of one scheduler; token counts are for one step.

    max_batched_tokens: the token budget of a step; decodes come out of it first.
    max_running: most sequences that hold blocks on the device at once.
    max_waiting: a request that finds so many waiting is refused; None: never.
    max_seq_len: most positions of a sequence, prompt and answer; None: the pool decides.
    reserve_output: admit only what fits at its full length beside all others at theirs.
    preemption: "recompute" drops the cache of a victim, "swap" keeps it in `host_blocks` blocks
    of host memory (None: any number) and falls back to recompute when these are full.
    chunked_prefill: cut prompts at the budget; without it a longer one gets a step for itself.

    >>> Limits(max_running=300, max_batched_tokens=256)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: max_batched_tokens=256: must be at least max_running, 300: \
each running sequence decodes one token a step
    """

    max_batched_tokens: int = 8192
    max_running: int = 256
    max_waiting: int | None = None
    max_seq_len: int | None = None
    reserve_output: bool = False
    policy: str = FCFS
    preemption: str = RECOMPUTE
    host_blocks: int | None = None
    chunked_prefill: bool = True

    def __post_init__(self) -> None:
        for name in ("max_batched_tokens", "max_running"):
            whole_number(name, getattr(self, name))
        for name in ("max_waiting", "max_seq_len", "host_blocks"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), minimum=int(name == "max_seq_len"))
        if self.max_batched_tokens < self.max_running:
            rule = f"must be at least max_running, {self.max_running}: each running sequence"
            rule += " decodes one token a step"
            raise InvalidArgument("max_batched_tokens", self.max_batched_tokens, rule)
        for name, known in (("policy", POLICIES), ("preemption", PREEMPTIONS)):
            if getattr(self, name) not in known:
                rule = f"must be one of {', '.join(known)}"
                raise InvalidArgument(name, getattr(self, name), rule)

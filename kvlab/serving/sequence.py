"""One answer on its way: how many of its tokens are known, computed and emitted.

A request with several samples becomes several sequences when its prompt is computed.
"""

from kvlab.serving.request import Request

NEW, WAITING, RUNNING, ENDED = "new", "waiting", "running", "ended"

STOPPED, LENGTH = "stop", "length"
ABORTED, REFUSED, OUTGROWN = "aborted", "refused", "outgrown"
FINISHED = frozenset((STOPPED, LENGTH))
"""How a sequence may end; only the first two are answers that are complete."""

Key = tuple[int, int, int]


class Sequence:
    """One sample of a request while it waits, runs or has ended.

    `num_tokens` are the tokens known (prompt and emitted), `num_computed` those whose keys and
    values are in the pool (while it is swapped out: on the host), `num_slots` those that have a
    slot. `lost` are computed tokens that a preemption threw away, `width` the sequences that it
    will be: its samples, before they part. `ends_request`: all other samples ended before it.
    `token_ids` is None where only lengths are known.
    """

    __slots__ = (
        "end_reason",
        "ends_request",
        "error",
        "first_token_at",
        "forked_from",
        "host_blocks",
        "key",
        "lost",
        "num_computed",
        "num_emitted",
        "num_preemptions",
        "num_slots",
        "num_tokens",
        "request",
        "sample",
        "seq_id",
        "state",
        "stops_after",
        "token_ids",
        "width",
    )

    def __init__(self, seq_id: int, request: Request, key: Key, sample: int = 0) -> None:
        self.seq_id, self.request, self.key, self.sample = seq_id, request, key, sample
        self.state = NEW
        self.end_reason: str | None = None
        self.error: str | None = None
        self.ends_request = False
        self.first_token_at: float | None = None
        self.forked_from: Sequence | None = None
        self.host_blocks: list[int] | None = None
        self.token_ids = None if request.prompt_ids is None else list(request.prompt_ids)
        self.num_tokens = request.prompt_tokens
        self.num_computed = self.num_emitted = self.num_slots = 0
        self.num_preemptions = self.lost = 0
        self.width = 1 if sample else request.num_samples
        wanted, limit = request.output_tokens, request.max_new_tokens
        self.stops_after = limit if wanted is None or wanted > limit else wanted

    @property
    def pending(self) -> int:
        """Known tokens that are not computed yet: 1 while decoding."""
        return self.num_tokens - self.num_computed

    @property
    def emitted_ids(self) -> list[int]:
        """The tokens written so far; empty where only lengths are known."""
        return [] if self.token_ids is None else self.token_ids[self.request.prompt_tokens :]

    @property
    def name(self) -> tuple[int, int]:
        """Request and sample: the same in every run of a workload."""
        return self.request.request_id, self.sample

    def __repr__(self) -> str:
        return (
            f"Sequence {self.request.request_id}.{self.sample}: {self.state}, {self.num_computed}"
            f" of {self.num_tokens} tokens computed, {self.num_emitted} emitted"
        )


def made_up_id(seq: Sequence) -> int:
    """Return an id for the next token where no model says it: below 0, and nobody else's."""
    return -1 - (seq.seq_id << 32) - seq.num_tokens

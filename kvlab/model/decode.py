"""Writing text token by token, with any cache or with none.

P prompt tokens and N emitted ones: the prefill emits the first, N - 1 decode steps the others, and
the last one is never fed back, so a cache ends with P + N - 1 tokens. Left out: beam search.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab.arithmetic.checks import true_or_false, whole_number
from kvlab.cache import (
    cache_length,
    cache_nbytes,
    cache_reserved_nbytes,
    make_cache,
    rollback,
)
from kvlab.errors import InvalidArgument
from kvlab.model.decode_inputs import (
    check_cache,
    check_capacity,
    check_mask,
    check_stop_ids,
    chunks,
    tokens_to_feed,
)
from kvlab.model.fast_llama import fast_model
from kvlab.model.llama import Llama
from kvlab.model.phases import continue_from, decode_one_token, prefill, run_pieces
from kvlab.model.sampling import Sampler

if TYPE_CHECKING:
    from transformers import Cache

__all__ = ["Step", "continue_from", "decode_one_token", "generate", "prefill"]


@dataclass(frozen=True)
class Step:
    """One emitted token (one per row of a batch) and what it took.

    `token_ids` holds None for a row that had stopped before. `token_forwards` counts the tokens
    that this step ran through the model, over all rows, padding and stopped rows too;
    `total_token_forwards` is the sum so far. `seconds` runs from the forward pass to the token
    known on the CPU. `logits`, when asked for, is (batch, vocab_size).
    """

    token_ids: tuple[int | None, ...]
    phase: str
    seconds: float
    cache_bytes: int
    cache_reserved_bytes: int
    token_forwards: int
    total_token_forwards: int
    logits: Tensor | None = field(default=None, repr=False, compare=False)

    @property
    def token_id(self) -> int:
        """The token, where the batch is one row; a larger batch has `token_ids`."""
        if len(self.token_ids) != 1 or self.token_ids[0] is None:
            raise InvalidArgument("token_ids", self.token_ids, "token_id is for a batch of one row")
        return self.token_ids[0]


def generate(
    model: Llama,
    input_ids: Tensor | Sequence[int],
    *,
    max_new_tokens: int,
    cache: "str | Cache | None" = "growing",
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    stop_ids: Iterable[int] = (),
    attention_mask: Tensor | None = None,
    chunk_size: int | None = None,
    keep_logits: bool = False,
    continuing: str | None = None,
    fast: bool = False,
) -> Iterator[Step]:
    """Check every argument now, then yield one `Step` per emitted token.

    `cache` is a name, a cache object (ours or transformers') or None, which like "none" runs the
    whole text again at every step. A pre-allocated cache made by name has room for exactly
    P + N - 1 tokens. A row that emits one of `stop_ids` emits nothing more; when all rows have,
    the loop ends. Stopped anywhere, the cache holds whole steps and can be continued.

    A cache that holds tokens is refused (`CacheInUse`) unless `continuing` says what `input_ids`
    is: "new_ids", the tokens that follow those held, or "full_ids", the whole text.

    `fast` takes the fast path (`fast_llama.py`), which writes a pre-allocated cache in place.
    """
    model = fast_model(model, cache) if true_or_false("fast", fast) else model
    steps = whole_number("max_new_tokens", max_new_tokens)
    sampler = Sampler(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    store = None if isinstance(cache, str) else cache
    check_cache(model, store)
    ids = tokens_to_feed(model, input_ids, store, continuing)
    capacity = check_capacity(model, ids, steps, store)
    mask = check_mask(attention_mask, ids, cache_length(store))
    stops = check_stop_ids(stop_ids, model.config.vocab_size)
    if isinstance(cache, str):
        store = make_cache(cache, num_layers=model.config.num_layers, capacity=capacity)
    chunks(ids.shape[1], chunk_size, store)
    run = _Run(model, store, sampler, stops, chunk_size, keep_logits, ids, mask)
    return run.steps(steps)


@dataclass
class _Run:
    """One generation under way: what is fed next, the padding mask, which rows still write."""

    model: Llama
    cache: "Cache | None"
    sampler: Sampler
    stops: frozenset[int]
    chunk_size: int | None
    keep_logits: bool
    feed: Tensor
    mask: Tensor | None
    total: int = 0

    def __post_init__(self) -> None:
        self.writing = [True] * len(self.feed)

    def steps(self, max_new_tokens: int) -> Iterator[Step]:
        """Yield steps until N tokens are out or every row has stopped."""
        for index in range(max_new_tokens):
            step, emitted = self.step("decode" if index else "prefill")
            yield step
            self.writing = [t is not None and t not in self.stops for t in step.token_ids]
            if not any(self.writing):
                return
            self.append(emitted)

    def step(self, phase: str) -> tuple[Step, Tensor]:
        """Take one step, or none at all; return it and the emitted tokens, (batch,)."""
        started = perf_counter()
        with rollback(self.cache):  # one undo for all of it: never half a step
            logits, emitted, tokens = self.forward(phase)
            seconds = perf_counter() - started
            rows = zip(tokens, self.writing, strict=True)
            step = Step(
                token_ids=tuple(token if writing else None for token, writing in rows),
                phase=phase,
                seconds=seconds,
                cache_bytes=cache_nbytes(self.cache),
                cache_reserved_bytes=cache_reserved_nbytes(self.cache),
                token_forwards=self.feed.numel(),
                total_token_forwards=self.total + self.feed.numel(),
                logits=logits if self.keep_logits else None,
            )
        self.total = step.total_token_forwards
        return step, emitted

    @torch.no_grad()
    def forward(self, phase: str) -> tuple[Tensor, Tensor, list[int]]:
        """Run the model and choose: logits, emitted tokens, and the same tokens as numbers."""
        chunk_size = self.chunk_size if phase == "prefill" else None
        pieces = chunks(self.feed.shape[1], chunk_size, self.cache)
        logits = run_pieces(self.model, self.feed, self.cache, self.mask, pieces)[:, -1]
        emitted = self.sampler.pick(logits)
        return logits, emitted, emitted.tolist()  # reading the token waits for the device

    def append(self, emitted: Tensor) -> None:
        """Make the emitted tokens the next input; without a cache they join the whole text.

        A stopped row passes through with the others: rows never see one another.
        """
        column = emitted[:, None]
        self.feed = column if self.cache is not None else torch.cat([self.feed, column], dim=1)
        if self.mask is not None:
            self.mask = torch.cat([self.mask, torch.ones_like(column)], dim=1)

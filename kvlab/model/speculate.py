"""Speculative decoding: a draft guesses some tokens, one pass of the model checks them all.

Greedy only, one sequence. What comes out is what the model alone would write. Both caches hold
guesses for a moment, so they need room for them, and rows that were wrong are dropped again.
Left out: sampling (it needs a rejection rule that keeps the distribution), trees of guesses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache import cache_length, make_cache, rollback, truncate_to
from kvlab.errors import InvalidArgument
from kvlab.model.decode_inputs import check_capacity, token_tensor
from kvlab.model.llama import Llama
from kvlab.model.phases import prefill

if TYPE_CHECKING:
    from transformers import Cache


class Draft(Protocol):
    """Whoever guesses: it is given the whole text so far and proposes at most `count` tokens."""

    def propose(self, text: Sequence[int], count: int) -> list[int]:
        """Return the tokens that may follow `text`."""
        ...


@dataclass(frozen=True)
class NGramDraft:
    """Guess that the text repeats itself: copy what followed its last `length` tokens before.

    It costs nothing to ask and keeps no cache; where nothing repeats, it proposes nothing.

    >>> NGramDraft(length=2).propose([7, 8, 9, 5, 7, 8], 2)
    [9, 5]
    """

    length: int = 2

    def propose(self, text: Sequence[int], count: int) -> list[int]:
        """Return what followed the latest earlier place with the same last tokens, or nothing."""
        tail = list(text[-self.length :])
        for start in range(len(text) - self.length - 1, -1, -1):
            after = start + self.length
            if list(text[start:after]) == tail:
                return list(text[after : after + count])
        return []


class ModelDraft:
    """Guess with a smaller model that keeps a cache of its own; it must know the same tokens."""

    def __init__(self, model: Llama) -> None:
        self.model, self.seen, self.rows_dropped = model, [], 0
        self.cache = make_cache("growing", num_layers=model.config.num_layers)

    def propose(self, text: Sequence[int], count: int) -> list[int]:
        """Forget the guesses that did not become text, read what is new, and guess greedily."""
        held = self._forget_wrong_guesses(text)
        guesses, feed = [], list(text[held:])
        for _ in range(count):
            logits = prefill(self.model, [feed], self.cache)
            self.seen += feed
            feed = [int(logits[0, -1].argmax())]
            guesses += feed
        return guesses

    def _forget_wrong_guesses(self, text: Sequence[int]) -> int:
        """Drop rows until the cache holds a part of `text`, its last token left to feed."""
        pairs = enumerate(zip(self.seen, text[:-1], strict=False))
        same = next((i for i, (a, b) in pairs if a != b), min(len(self.seen), len(text) - 1))
        self.rows_dropped += len(self.seen) - same
        truncate_to(self.cache, same)
        del self.seen[same:]
        return same


def first_layers(model: Llama, num_layers: int) -> Llama:
    """Return a draft made of a model's own first layers and its head; no weight is copied."""
    wanted = whole_number("num_layers", num_layers)
    if wanted > model.config.num_layers:
        rule = f"must be at most {model.config.num_layers}, the layers of the model"
        raise InvalidArgument("num_layers", num_layers, rule)
    with torch.device("meta"):
        draft = Llama(model.config.first_layers(wanted))
    state = model.state_dict()
    draft.load_state_dict({name: state[name] for name in draft.state_dict()}, assign=True)
    return draft.eval().requires_grad_(False)


@dataclass(frozen=True)
class Round:
    """One pass of the model: what was proposed, what was emitted, and the rows in its cache.

    The first `accepted` of `proposed` were right; the model adds one token of its own. `peak_rows`
    are in the cache before the wrong guesses are dropped, `rows` after it.
    """

    proposed: tuple[int, ...]
    emitted: tuple[int, ...]
    accepted: int
    peak_rows: int
    rows: int
    seconds: float

    @property
    def rows_dropped(self) -> int:
        """The rows of guesses that were wrong."""
        return self.peak_rows - self.rows


def accept(proposed: Sequence[int], chosen: Sequence[int]) -> tuple[list[int], int]:
    """Return the tokens to emit and the rows to drop.

    `chosen` is what the model itself would write after each fed token: one more than `proposed`.

    >>> accept([4, 5, 6], [4, 5, 9, 2])
    ([4, 5, 9], 1)
    """
    right = 0
    while right < len(proposed) and proposed[right] == chosen[right]:
        right += 1
    return [*proposed[:right], chosen[right]], len(proposed) - right


def speculate(
    model: Llama,
    input_ids: Tensor | Sequence[int],
    draft: Draft,
    *,
    max_new_tokens: int,
    lookahead: int = 4,
    cache: "Cache | None" = None,
) -> Iterator[Round]:
    """Check the arguments now, then yield one `Round` per pass until all tokens are emitted.

    The first round is the prefill and proposes nothing. `lookahead` is the most tokens guessed for
    one pass. The last emitted token is not in the cache, as with `generate`.
    """
    steps, most = whole_number("max_new_tokens", max_new_tokens), lookahead
    whole_number("lookahead", lookahead)
    ids = token_tensor(model, input_ids)
    if ids.shape[0] != 1:
        raise InvalidArgument("input_ids", tuple(ids.shape), "must be one sequence")
    check_capacity(model, ids, steps, cache)
    store = make_cache("growing", num_layers=model.config.num_layers) if cache is None else cache
    return _rounds(model, ids[0].tolist(), draft, steps, most, store)


def _rounds(
    model: Llama, text: list[int], draft: Draft, steps: int, most: int, cache: "Cache"
) -> Iterator[Round]:
    left, unseen = steps, list(text)
    while left:
        started = perf_counter()
        count = 0 if left == steps else min(most, left - 1)  # the model adds one token itself
        proposed = draft.propose(text, count)[:count] if count else []
        with rollback(cache):
            logits = prefill(model, [unseen + proposed], cache, last_token_only=False)
            chosen = logits[0, -1 - len(proposed) :].argmax(-1).tolist()
            emitted, wrong = accept(proposed, chosen)
        peak = cache_length(cache)
        truncate_to(cache, peak - wrong)
        text, unseen, left = text + emitted, emitted[-1:], left - len(emitted)
        seconds = perf_counter() - started
        right = len(proposed) - wrong
        yield Round(tuple(proposed), tuple(emitted), right, peak, peak - wrong, seconds)

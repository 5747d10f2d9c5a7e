"""Our own ways of writing text, behind one call: the one place that knows which of them there are.

The fast path, unless the lesson's way is asked for; a line says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.errors import Unsupported

if TYPE_CHECKING:
    from torch import Tensor

    from kvlab.model.load import LoadedModel

LESSON = "the lesson's way"


class Written(NamedTuple):
    """One answer: seconds of the prefill, of a decode step on average, and the tokens."""

    prefill_seconds: float
    step_seconds: float
    token_ids: list[int]

    @property
    def seconds(self) -> float:
        """Return the seconds of the whole answer."""
        return self.prefill_seconds + self.step_seconds * (len(self.token_ids) - 1)


class OurDecoder:
    """Writes greedily for a batch of equal prompts; made once, run as often as liked.

    path: "float32" reads the weights as they are, "packed" in their narrowest lossless form, as
    the fast path names them; "measured" lets it choose. Without `fast` it is the lesson's way.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        max_seq_len: int,
        batch: int = 1,
        path: str = "measured",
        fast: bool = True,
    ) -> None:
        self.loaded, self.batch, self.max_seq_len = loaded, batch, max_seq_len
        self.fast: Any = None
        if fast:
            from kvlab.model.fast_decode import FastDecoder

            self.fast = FastDecoder(loaded.model, max_seq_len=max_seq_len, batch=batch, path=path)

    @property
    def name(self) -> str:
        """Return what this is, in a few words."""
        return self.fast.describe() if self.fast is not None else LESSON

    def weight_bytes(self) -> int:
        """Return the bytes of weights that a step reads: the embedding only where it is the head.

        A path that keeps the weights in another form counts that form.
        """
        if self.fast is not None:
            self.fast.reset()
            return int(self.fast.step_bytes - self.cache_bytes_per_token() * self.batch)
        model = self.loaded.model
        held = sum(p.numel() for p in model.parameters())
        tied = model.config.tied_embeddings
        unread = 0 if tied else model.model.embed_tokens.weight.numel()
        return (held - unread) * self.loaded.dtype.itemsize

    def cache_bytes_per_token(self) -> int:
        """Return the bytes that one token of one row adds to the cache."""
        config = self.loaded.model.config
        return kv_bytes_per_token(
            num_layers=config.num_layers,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            bytes_per_element=self.loaded.dtype.itemsize,
        )

    def write(self, ids: Tensor, new_tokens: int) -> Written:
        """Write `new_tokens` after `ids`, (batch, prompt tokens); tokens are those of row 0."""
        way = self._lesson if self.fast is None else self._fast
        return way(ids, new_tokens)

    @torch.no_grad()
    def _fast(self, ids: Tensor, new_tokens: int) -> Written:
        decoder = self.fast
        decoder.reset()
        started = perf_counter()
        chosen = decoder.prefill(ids).argmax(-1)
        first, kept = self._now(), [chosen]
        for _ in range(new_tokens - 1):
            chosen = decoder.step(chosen).argmax(-1)
            kept.append(chosen)
        steps = self._now() - first
        tokens = [int(row.flatten()[0]) for row in kept]
        return Written(first - started, steps / max(1, new_tokens - 1), tokens)

    @torch.no_grad()
    def write_uncached(self, ids: Tensor, new_tokens: int) -> Written:
        """Write the same with no cache to come back to: each token reads the whole text again."""
        started, kept = self._now(), []
        first = started
        for number in range(new_tokens):
            chosen = self._whole(ids).argmax(-1)
            ids = torch.cat([ids, chosen], dim=1)
            kept.append(int(chosen.flatten()[0]))
            first = first if number else self._now()
        steps = self._now() - first
        return Written(first - started, steps / max(1, new_tokens - 1), kept)

    def _whole(self, ids: Tensor) -> Tensor:
        if self.fast is None:
            return self.loaded.model(ids, last_token_only=True)
        self.fast.reset()
        return self.fast.prefill(ids)

    def _lesson(self, ids: Tensor, new_tokens: int) -> Written:
        from kvlab.model.decode import generate

        cache = "preallocated"
        steps = list(generate(self.loaded.model, ids, max_new_tokens=new_tokens, cache=cache))
        decode = sum(step.seconds for step in steps[1:])
        tokens = [int(step.token_ids[0] or 0) for step in steps]
        return Written(steps[0].seconds, decode / max(1, new_tokens - 1), tokens)

    def _now(self) -> float:
        if self.loaded.device.type == "cuda":
            torch.cuda.synchronize(self.loaded.device)
        return perf_counter()


def serve_seconds(loaded: LoadedModel, prompts: Sequence[Sequence[int]], new_tokens: int) -> float:
    """Return the seconds in which our engine serves all prompts at once, through a paged cache.

    The engine takes the fast path by itself. The pool has room for all of them, blocks hold 16
    tokens, nothing is shared.
    """
    from kvlab.serving.engine import Engine
    from kvlab.serving.request import prompt

    blocks = sum(-(-(len(ids) + new_tokens) // 16) for ids in prompts) + 1
    engine = Engine(loaded.model, num_blocks=blocks, prefix_caching=False)
    asked = [prompt(number, ids, new_tokens) for number, ids in enumerate(prompts)]
    started = perf_counter()
    answers = engine.serve(asked)
    seconds = perf_counter() - started
    assert all(len(answer.token_ids) == new_tokens for answer in answers.values())
    return seconds


def read_bandwidths() -> list[float]:
    """Return the read bandwidth that the fast path's own loop gives, bytes a second, or nothing."""
    from kvlab.model.fast_choice import read_bandwidth

    try:
        return [read_bandwidth()]
    except Unsupported:  # no compiler here
        return []

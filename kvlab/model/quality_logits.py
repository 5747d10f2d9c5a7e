"""Reading a task through a cache, and comparing what the model then says.

The context is read in one go, then every token alone, the right one whatever the model said: so
each step reads what the cache kept, and a mistake does not change what comes next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from kvlab.cache import cache_nbytes
from kvlab.model.llama import Llama
from kvlab.model.quality_task import Task

Watch = Callable[[], None]
"""Called after every forward pass of the model."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What came of one batch: logits (rows, steps, vocab_size) of the tokens read alone.

    `cache_bytes` are those held at the end for one row. `seconds` are those of the steps.
    """

    logits: Tensor
    cache_bytes: int
    seconds: float


@torch.no_grad()
def read(model: Llama, task: Task, cache: Any, watch: Watch | None = None) -> Reading:
    """Read one batch through a new cache, ours or transformers', to its last token."""
    tell = watch or (lambda: None)
    ids = task.input_ids
    model(ids[:, : task.context_len], cache=cache, last_token_only=True)
    tell()
    said: Tensor | None = None
    started = perf_counter()
    for step, token in enumerate(ids[:, task.context_len :].split(1, dim=1)):
        logits = model(token, cache=cache)[:, -1]
        if said is None:
            said = logits.new_empty(len(ids), task.steps, logits.shape[-1])
        said[:, step] = logits
        tell()
    if ids.is_cuda:
        torch.cuda.synchronize(ids.device)
    seconds = perf_counter() - started
    return Reading(said, one_row_nbytes(cache, len(ids)), seconds)


def one_row_nbytes(cache: Any, rows: int) -> int:
    """Return the bytes held for one row; our caches let go of the others, so use it last.

    Not the bytes of all divided by the rows: a scale for a whole tensor is there once. Of
    transformers' caches they are divided, for some of those can't let go of a row.
    """
    if not all(hasattr(layer, "select_rows") for layer in cache.layers):
        return cache_nbytes(cache) // rows
    if rows > 1:
        cache.select_rows(torch.zeros(1, dtype=torch.long))
    return cache_nbytes(cache)


@dataclass
class Tally:
    """Sums over tokens of what is compared; `kl` and `loss` are in nats."""

    steps: int = 0
    kl: float = 0.0
    same_top: int = 0
    graded: int = 0
    loss: float = 0.0
    right: int = 0

    def add(self, task: Task, full: Tensor, logits: Tensor) -> None:
        """Count one batch: `full` and `logits` are (rows, steps, vocab_size).

        One row at a time in float64: sums of many small numbers, and no second copy of them all.
        """
        graded, targets = task.graded()
        for row in range(len(logits)):
            known = full[row].double().log_softmax(-1)
            found = logits[row].double().log_softmax(-1)
            self.kl += float((known.exp() * (known - found)).sum())
            self.same_top += int((known.argmax(-1) == found.argmax(-1)).sum())
            said = found[graded.to(found.device)]
            self.loss -= float(said.gather(-1, targets[row, :, None]).sum())
            self.right += int((said.argmax(-1) == targets[row]).sum())
        self.steps += logits.shape[0] * logits.shape[1]
        self.graded += targets.numel()

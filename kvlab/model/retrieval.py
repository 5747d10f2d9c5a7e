"""Recall: the share of a retrieval language's questions that a model answers right.

`retrieval_language.py` makes the sequences, `retrieval_tokenizer.py` reads and shows them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.retrieval_language import (
    CHANCE,
    Sequences,
    make_sequences,
    min_seq_len,
)
from kvlab.model.retrieval_tokenizer import build_tokenizer, render, save_tokenizer
from kvlab.model.retrieval_words import VOCAB_SIZE

if TYPE_CHECKING:
    from kvlab.model.llama import Llama

__all__ = [
    "CHANCE",
    "VOCAB_SIZE",
    "Sequences",
    "build_tokenizer",
    "make_sequences",
    "min_seq_len",
    "predicted_answers",
    "recall",
    "render",
    "save_tokenizer",
]

BATCH_TOKENS = 8_192
"""The most tokens given to the model in one go."""

MakeCache = Callable[[], Any]


def recall(
    model: "Llama",
    *,
    seq_len: int = 512,
    num_facts: int = 32,
    num_questions: int | None = None,
    num_sequences: int = 16,
    seed: int = 1_000_000,
    cache: str | MakeCache | None = None,
) -> float:
    """Return the share of questions answered right, from 0 to 1, on fresh sequences.

    `CHANCE` is what a model reaches that has lost the facts. Without `cache` the model reads each
    sequence in one go; with one, see `predicted_answers`. Seeds below a million are left to
    training.
    """
    whole_number("num_sequences", num_sequences)
    rows = max(1, BATCH_TOKENS // whole_number("seq_len", seq_len))
    right = asked = 0
    for start in range(0, num_sequences, rows):
        count = min(rows, num_sequences - start)
        batch = make_sequences(
            count,
            seq_len=seq_len,
            num_facts=num_facts,
            num_questions=num_questions,
            seed=(seed, start),
        )
        said = predicted_answers(model, batch, cache=cache)
        right += int((said == torch.from_numpy(batch.answers)).sum())
        asked += said.numel()
    return right / asked


@torch.no_grad()
def predicted_answers(
    model: "Llama", batch: Sequences, *, cache: str | MakeCache | None = None
) -> Tensor:
    """Return the token ids that the model says, (num_sequences, num_questions), on the CPU.

    `cache` is a name of `kvlab.cache.CACHE_NAMES` or a function that makes a new cache. The model
    then reads the context in one go and the rest token by token, as in decode; the right answer,
    not the model's, stands behind each question. Raises `InvalidArgument` for a vocabulary that
    is not the language's.
    """
    if model.config.vocab_size != VOCAB_SIZE:
        raise InvalidArgument("vocab_size", model.config.vocab_size, f"must be {VOCAB_SIZE}")
    ids = torch.from_numpy(batch.input_ids).to(next(model.parameters()).device)
    store = _new_cache(cache, model.config.num_layers, ids.shape[1])
    positions = batch.answer_positions - 1
    if store is None:
        logits = model(ids)[:, positions]
    else:
        model(ids[:, : batch.context_len], cache=store, last_token_only=True)
        rest = [model(token, cache=store) for token in ids[:, batch.context_len : -1].split(1, 1)]
        logits = torch.cat(rest, dim=1)[:, positions - batch.context_len]
    return logits.argmax(-1).cpu()


def _new_cache(cache: str | MakeCache | None, num_layers: int, capacity: int) -> Any:
    if not isinstance(cache, str):
        if cache is not None and not callable(cache):
            raise InvalidArgument("cache", cache, "must be a name or a function that makes a cache")
        return None if cache is None else cache()
    from kvlab.cache import make_cache

    return make_cache(cache, num_layers=num_layers, capacity=capacity)

"""Texts to measure with: a prompt of any length, and some pages of prose of our own.

The prose lies in `data/text`, six short pieces: two stories, a recipe, a dialogue, facts, a letter.
"""

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab._paths import data_dir
from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.retrieval_language import make_sequences
from kvlab.model.retrieval_words import BOS_ID, VOCAB_SIZE, WHERE_ID

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

_ENGLISH = (
    "A library keeps its books on long shelves. Every morning the first reader asks for a book, "
    "and the librarian walks to the shelf, finds it and brings it back. Without a catalogue she "
    "would have to look at every shelf again for every reader. One day she decided to write down "
    "where each book stands, and from then on"
)


def sample_ids(loaded: "LoadedModel", num_tokens: int) -> Tensor:
    """Return token ids (1, num_tokens) of a text that breaks off where something must follow.

    The bundled models get a sequence of their own language, every other model English prose, its
    beginning cut off or repeated to fit. The same call gives the same ids.
    """
    wanted = whole_number("num_tokens", num_tokens)
    if speaks_retrieval(loaded):
        length = max(wanted, 16)
        batch = make_sequences(1, seq_len=length, num_facts=2, seed=2)
        ids = torch.from_numpy(batch.input_ids).to(loaded.device)
    else:
        once = loaded.encode(_ENGLISH)
        ids = once.repeat(1, -(-wanted // once.shape[1]))
    return ids[:, -wanted:]


def speaks_retrieval(loaded: "LoadedModel") -> bool:
    """Return whether a model's words are those of the retrieval language, as those of `tiny` are.

    >>> from kvlab.model.load import load_model
    >>> speaks_retrieval(load_model("tiny"))
    True
    """
    words = loaded.tokenizer.vocab_size
    return words == VOCAB_SIZE and loaded.tokenizer.encode("where") == [BOS_ID, WHERE_ID]


@cache
def prose() -> str:
    """Return our own prose, all pieces in one, an empty line between paragraphs."""
    pieces = sorted((data_dir() / "text").glob("*.txt"))
    return "\n\n".join(path.read_text(encoding="utf-8").strip() for path in pieces)


def prose_ids(loaded: "LoadedModel", *, num_tokens: int, rows: int) -> Tensor:
    """Return (rows, num_tokens) token ids of `prose()`, the rows spread evenly over it.

    Rows overlap where the text is too short for so many. `InvalidArgument` where it is too short
    for one.
    """
    whole_number("num_tokens", num_tokens), whole_number("rows", rows)
    ids = loaded.encode(prose())[0]
    spare = len(ids) - num_tokens
    if spare < 0:
        rule = f"our prose has {len(ids):,} tokens in this model's vocabulary"
        raise InvalidArgument("num_tokens", num_tokens, rule)
    starts = [spare * row // max(1, rows - 1) for row in range(rows)]
    return torch.stack([ids[start : start + num_tokens] for start in starts])

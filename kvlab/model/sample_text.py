"""A text of any length that a model can go on from, for measurements that need a prompt."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.model.retrieval_language import make_sequences

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

    The bundled model gets a sequence of its own language, every other model English prose, its
    beginning cut off or repeated to fit. The same call gives the same ids.
    """
    wanted = whole_number("num_tokens", num_tokens)
    if loaded.name == "tiny":
        length = max(wanted, 16)
        batch = make_sequences(1, seq_len=length, num_facts=2, seed=2)
        ids = torch.from_numpy(batch.input_ids).to(loaded.device)
    else:
        once = loaded.encode(_ENGLISH)
        ids = once.repeat(1, -(-wanted // once.shape[1]))
    return ids[:, -wanted:]

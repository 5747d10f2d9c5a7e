"""Feed a model chunk by chunk with one cache."""

from typing import Any

import torch
from torch import Tensor

from kvlab.model.llama import Llama


def feed(model: Llama, chunks: list[Tensor], cache: Any, mask: Tensor | None = None) -> Tensor:
    """Return the logits of all chunks, run one after another with one cache."""
    logits, seen = [], 0
    for chunk in chunks:
        seen += chunk.shape[1]
        part = None if mask is None else mask[:, :seen]
        logits.append(model(chunk, cache=cache, attention_mask=part))
    return torch.cat(logits, dim=1)

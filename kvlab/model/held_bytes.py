"""Formula against reality: decode with a tiny real model and count the bytes its cache holds.

The count adds up tensors and knows no formula; the formula reads the config and sees no tensor.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from kvlab.arithmetic.payload import CacheTypes, entry_bytes
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.storage import GROWING, ModelStorage
from kvlab.cache.hf import call_model
from kvlab.cache.hf_caches import cache_for
from kvlab.cache.measure import tensors_of
from kvlab.model.tiny_families import FAMILIES, Family

if TYPE_CHECKING:
    from transformers import PretrainedConfig

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class Held:
    """What one family held after a decode, and what the formula says; all in bytes.

    `window_bytes` is what the formula counts and transformers drops between steps: the oldest
    entry of each full window, which no later query may see.
    """

    family: Family
    storage: ModelStorage
    positions: int
    formula_bytes: int
    window_bytes: int
    held_bytes: int

    @property
    def equal(self) -> bool:
        """Whether the bytes held are the formula's, less those of `window_bytes`."""
        return self.held_bytes == self.formula_bytes - self.window_bytes


def measure_family(
    family: Family, *, prompt_tokens: int = 20, new_tokens: int = 5, dtype: str = "bf16"
) -> Held:
    """Build the family's tiny model, prefill, decode, and count what its cache holds.

    >>> held = measure_family(FAMILIES[1])
    >>> held.positions, held.formula_bytes, held.held_bytes
    (24, 12288, 12288)
    """
    with _quiet():
        config = family.config()
    storage = read_model(config.to_dict(), name=family.name)
    cache = _decode(family, config, (prompt_tokens, new_tokens), DTYPES[dtype])
    positions = prompt_tokens + new_tokens - 1
    request = size_request(
        storage, context=positions, cache_dtype=dtype, source_length=family.source_length
    )
    return Held(
        family,
        storage,
        positions,
        request.request_bytes,
        oldest_of_full_windows(storage, positions, dtype),
        sum(tensor.nbytes for layer in cache.layers for tensor in tensors_of(layer)),
    )


def measure_families(**sizes: Any) -> Iterator[Held]:
    """Yield the count of every family; the keywords are those of `measure_family`."""
    for family in FAMILIES:
        yield measure_family(family, **sizes)


def oldest_of_full_windows(storage: ModelStorage, positions: int, dtype: str) -> int:
    """Return the bytes of one entry in each windowed layer whose window is full.

    >>> oldest_of_full_windows(read_model("mistral-7b-v0.1"), 4096, "bf16")
    131072
    """
    types = CacheTypes.of(dtype)
    full = (
        layer
        for layer in storage.layers
        if layer.kind in GROWING and layer.window is not None and positions >= layer.window
    )
    return sum(entry_bytes(layer, types) for layer in full)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out transformers' remarks on faster kernels and token ids: all is tiny here."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)


def _decode(
    family: Family, config: "PretrainedConfig", tokens: tuple[int, int], dtype: torch.dtype
) -> Any:
    """Return transformers' own cache after a prefill and the decode steps that follow it."""
    prompt_tokens, new_tokens = tokens
    with _quiet(), torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        model = family.model(config).to(dtype).eval()
        ids = torch.randint(1, config.vocab_size, (1, prompt_tokens))
        cache, seen = cache_for(config), {}
        if family.source_length:
            shape = (1, family.source_length, config.hidden_size)
            seen["cross_attention_states"] = torch.randn(shape, dtype=dtype)
        logits, _ = call_model(model, ids, cache=cache, **seen)
        for _ in range(new_tokens - 1):
            newest = logits[:, -1:].argmax(-1)
            logits, _ = call_model(model, newest, cache=cache)
    return cache

"""Keep a finished conversation on disk and go on with it later, instead of prefilling it again.

What is kept is every layer's keys and values, the token ids and the padding. Left out: caches that
dropped or rounded tokens, because going on from them would not give the same text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from kvlab.cache import KVCache, make_cache, require_empty, rollback
from kvlab.errors import InvalidArgument, NotVerified, Unsupported
from kvlab.model.conversation_file import read_metadata, write_tensors

FORMAT = "kvlab conversation 1"
_SAMPLE = 16  # numbers of each weight that tell one model from another


@dataclass(frozen=True)
class SavedConversation:
    """What was written: the file, its size, the tokens in its cache, the hash, the seconds."""

    path: Path
    num_bytes: int
    tokens: int
    sha256: str
    seconds: float


@dataclass(frozen=True)
class Conversation:
    """What came back. Go on with `generate(..., cache=cache, continuing="full_ids")`.

    `token_ids` is (batch, tokens), the text so far; the cache may hold one token less, for the
    last one emitted has not been fed. `attention_mask` is the padding, or None.
    """

    cache: KVCache
    token_ids: Tensor
    attention_mask: Tensor | None
    verify_seconds: float
    read_seconds: float


def save_conversation(
    path: str | os.PathLike[str],
    cache: KVCache,
    *,
    model: nn.Module,
    token_ids: Tensor,
    attention_mask: Tensor | None = None,
) -> SavedConversation:
    """Write a conversation to `path`, whole or not at all, flushed to the disk.

    Raises `Unsupported` for a cache that does not hold every token as it was made,
    `InvalidArgument` for ids or a mask that do not fit it, `KvlabError` where nothing can be
    written. A file that stood there is replaced at the very end.
    """
    started, target = perf_counter(), Path(path)
    shapes: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {}
    for layer_idx, layer in enumerate(_layers(cache)):
        for name, states in zip(("keys", "values"), _exact_tokens(layer), strict=True):
            shapes[f"layers.{layer_idx}.{name}"] = (states.dtype, tuple(states.shape))
    extra = _text(cache, token_ids, attention_mask)
    shapes |= {name: (torch.int64, tuple(tensor.shape)) for name, tensor in extra.items()}

    def tensor(name: str) -> Tensor:
        if name in extra:
            return extra[name]
        _, layer_idx, which = name.split(".")
        return _exact_tokens(cache.layers[int(layer_idx)])[which == "values"]

    tokens = cache.get_seq_length()
    facts = {"format": FORMAT, "tokens": str(tokens), "layers": str(len(cache.layers))}
    digest = write_tensors(target, shapes, tensor, facts | {"model": fingerprint(model)})
    seconds = perf_counter() - started
    return SavedConversation(target, target.stat().st_size, tokens, digest, seconds)


def load_conversation(
    path: str | os.PathLike[str], cache: KVCache | str = "growing", *, model: nn.Module
) -> Conversation:
    """Check a file against its hash and fill an empty cache (or a new one, by name) from it.

    Raises `NotVerified` for a file that is damaged, cut short or not kvlab's, and
    `InvalidArgument` for one of another model. The cache is then as empty as before.
    """
    source, started = Path(path), perf_counter()
    facts = read_metadata(source)
    verified = perf_counter()
    if facts.get("format") != FORMAT:
        raise NotVerified(f"{source}: is no conversation of this kvlab")
    if facts["model"] != fingerprint(model):
        rule = "was computed by a model with other weights; its keys and values mean nothing here"
        raise InvalidArgument("path", str(source), rule)
    num_layers = int(facts["layers"])
    store = make_cache(cache, num_layers=num_layers) if isinstance(cache, str) else cache
    require_empty(store)
    if store is None or len(store.layers) != num_layers:
        raise InvalidArgument("cache", cache, f"must have the {num_layers} layers of the file")
    weight = next(model.parameters())
    with safe_open(source, framework="pt") as file, rollback(store):
        for layer_idx in range(num_layers):
            names = (f"layers.{layer_idx}.{name}" for name in ("keys", "values"))
            states = [file.get_tensor(name).to(weight.device) for name in names]
            store.update(*states, layer_idx)
        found = set(file.keys())
        ids = file.get_tensor("token_ids").to(weight.device)
        mask = file.get_tensor("mask").to(weight.device) if "mask" in found else None
    return Conversation(store, ids, mask, verified - started, perf_counter() - verified)


def fingerprint(model: nn.Module) -> str:
    """Return a short name for a model's weights and angles, the same for ours and transformers'.

    Made of the parameters' names and shapes and some numbers of each; two different trainings
    differ, a changed single number may not be seen.
    """
    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        flat = weight.detach().flatten()
        sample = flat[:: max(len(flat) // _SAMPLE, 1)][:_SAMPLE].float().cpu()
        digest.update(f"{name}{tuple(weight.shape)}".encode() + sample.numpy().tobytes())
    for angles in _inverse_frequencies(model):
        digest.update(" ".join(f"{angle:.5g}" for angle in angles.tolist()).encode())
    return digest.hexdigest()[:32]


def _inverse_frequencies(model: nn.Module) -> Iterable[Tensor]:
    if hasattr(model, "rope"):
        return [model.rope.inv_freq]
    found = [b for name, b in model.named_buffers() if name.endswith("rotary_emb.inv_freq")]
    return found[:1]


def _layers(cache: KVCache) -> list[Any]:
    layers = getattr(cache, "layers", None)
    if not isinstance(cache, KVCache) or not layers or cache.get_seq_length() == 0:
        raise InvalidArgument("cache", cache, "must be a cache of kvlab that holds tokens")
    return layers


def _exact_tokens(layer: Any) -> tuple[Tensor, Tensor]:
    """Return a layer's keys and values; refuse one that kept less than it saw."""
    held, seen = layer.held(), layer.get_seq_length()
    whole = len(held) == 2 and all(
        states.ndim == 4 and states.shape[2] == seen and states.dtype == layer.dtype
        for states in held
    )
    if not whole:
        raise Unsupported(
            f"{type(layer).__name__} does not hold every token as it was made: a conversation"
            " resumed from it would go on otherwise"
        )
    return held


def _text(cache: KVCache, token_ids: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
    batch, tokens = cache.layers[0].batch_size, cache.get_seq_length()
    shape = tuple(token_ids.shape)
    if len(shape) != 2 or shape[0] != batch or shape[1] < tokens:
        rule = f"must be ({batch}, {tokens} or more), the text of the cache and what follows"
        raise InvalidArgument("token_ids", shape, rule)
    if mask is None:
        return {"token_ids": token_ids.long()}
    if tuple(mask.shape) != shape:
        raise InvalidArgument("attention_mask", tuple(mask.shape), f"must be {shape}")
    return {"token_ids": token_ids.long(), "mask": mask.long()}

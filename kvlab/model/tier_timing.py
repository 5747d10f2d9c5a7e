"""Tiers against the full cache, measured on this machine: decoding, and resuming a conversation.

Times are single runs: look at ratios, not at digits. Where it can be asked for, reading comes from
the disk and not from the system's memory of it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor

from kvlab.cache import KVCache, make_cache
from kvlab.errors import InvalidArgument
from kvlab.model.conversation_file import forget_pages
from kvlab.model.decode import generate
from kvlab.model.llama import Llama
from kvlab.model.phases import continue_from, prefill
from kvlab.model.resume import load_conversation, save_conversation

FULL, HOST, DISK, COLD_DISK = "full", "host", "disk", "disk, nothing in memory"
WAYS = (FULL, HOST, DISK, COLD_DISK)
"""The full cache; then the tiers, the last without the system's page cache."""


@dataclass(frozen=True)
class TierRun:
    """One generation with the cache on a tier.

    `bytes_in` and `bytes_out` are those of the whole run; `peak_device_bytes` is what lay on the
    device at the most, for a full cache all of it. `equal`: the logits are those of the full
    cache to the bit.
    """

    tier: str
    seconds_per_token: float
    bytes_in: int
    bytes_out: int
    cache_bytes: int
    peak_device_bytes: int
    equal: bool


@dataclass(frozen=True)
class ResumeTiming:
    """A conversation saved, loaded and gone on with, beside its prefill.

    `from_disk` says whether the file was dropped from memory before it was read. `equal`: both
    ways give the same next logits to the bit.
    """

    tokens: int
    file_bytes: int
    save_seconds: float
    verify_seconds: float
    read_seconds: float
    prefill_seconds: float
    from_disk: bool
    equal: bool

    @property
    def load_seconds(self) -> float:
        """Checking the hash and reading, together."""
        return self.verify_seconds + self.read_seconds


def time_tiers(
    model: Llama,
    input_ids: Tensor | Sequence[int],
    *,
    max_new_tokens: int,
    ways: Sequence[str] = WAYS,
    folder: str | os.PathLike[str] | None = None,
) -> list[TierRun]:
    """Write the same text with each of `ways`; `seconds_per_token` leaves the prefill out.

    A way that this system does not offer is left out of the list.
    """
    if unknown := set(ways) - set(WAYS):
        raise InvalidArgument("ways", sorted(unknown)[0], f"must be among {', '.join(WAYS)}")
    if COLD_DISK in ways and not hasattr(os, "posix_fadvise"):
        ways = [way for way in ways if way != COLD_DISK]
    runs, reference = [], None
    for way in (FULL, *(way for way in ways if way != FULL)):
        cache = _cache_on(way, model.config.num_layers, folder)
        options = {"max_new_tokens": max_new_tokens, "cache": cache, "keep_logits": True}
        steps = list(generate(model, input_ids, **options))
        logits = torch.cat([step.logits for step in steps])
        reference = logits if reference is None else reference
        seconds = [step.seconds for step in steps[1:]]
        traffic = getattr(cache, "traffic", None)
        run = TierRun(
            tier=way,
            seconds_per_token=sum(seconds) / max(len(seconds), 1),
            bytes_in=traffic.bytes_in if traffic else 0,
            bytes_out=traffic.bytes_out if traffic else 0,
            cache_bytes=cache.nbytes,
            peak_device_bytes=traffic.peak_device_nbytes if traffic else cache.nbytes,
            equal=torch.equal(logits, reference),
        )
        if way in ways:
            runs.append(run)
    return runs


def _cache_on(way: str, num_layers: int, folder: str | os.PathLike[str] | None) -> KVCache:
    if way == FULL:
        return make_cache("growing", num_layers=num_layers)
    on_disk = {"tier": "disk", "folder": folder, "page_cache": way != COLD_DISK}
    options = {"tier": "host"} if way == HOST else on_disk
    return make_cache("offloaded", num_layers=num_layers, **options)


def time_resume(
    model: Llama,
    token_ids: Tensor,
    *,
    question_ids: Tensor,
    folder: str | os.PathLike[str] | None = None,
) -> ResumeTiming:
    """Prefill `token_ids`, save, load, and ask `question_ids`, (batch, q_len), of both caches.

    The file lives in a folder of its own inside `folder`, which is removed at the end.
    """
    cache = make_cache("growing", num_layers=model.config.num_layers)
    started = perf_counter()
    prefill(model, token_ids, cache).max().item()  # reading a number waits for the device
    prefill_seconds = perf_counter() - started
    with tempfile.TemporaryDirectory(prefix="kvlab-", dir=folder) as place:
        path = Path(place) / "conversation.safetensors"
        saved = save_conversation(path, cache, model=model, token_ids=token_ids)
        from_disk = forget_pages(path)
        resumed = load_conversation(path, model=model)
        expected = continue_from(model, cache, new_ids=question_ids)
        found = continue_from(model, resumed.cache, new_ids=question_ids)
        return ResumeTiming(
            tokens=saved.tokens,
            file_bytes=saved.num_bytes,
            save_seconds=saved.seconds,
            verify_seconds=resumed.verify_seconds,
            read_seconds=resumed.read_seconds,
            prefill_seconds=prefill_seconds,
            from_disk=from_disk,
            equal=torch.equal(found, expected),
        )

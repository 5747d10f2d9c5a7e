"""Row decode: one stream in float32, beside transformers and beside what memory allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from kvlab.bench import peer_transformers as hf
from kvlab.bench.limits import decode_bytes, seconds_to_read
from kvlab.bench.lines import Line, compared, joined, short
from kvlab.bench.ours import LESSON, OurDecoder, Written, read_bandwidths
from kvlab.bench.rates import Reader
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Times, Work, interleaved
from kvlab.errors import KvlabError

if TYPE_CHECKING:
    from torch import Tensor

    from kvlab.model.load import LoadedModel

MS = "ms a token"


def rows(setting: Setting) -> Iterator[Line]:
    """Yield the lines of decode: the weights as they are, and packed where that is to be had."""
    from kvlab.bench.rows_gpu import decode_lines

    yield from decode_side_by_side(setting, setting.loaded(), "decode", "float32")
    yield from decode_lines(setting)


def decode_side_by_side(
    setting: Setting, loaded: LoadedModel, row: str, words: str, rounds: int = 3
) -> Iterator[Line]:
    """Yield one line for each form of our weights; all works of all lines share the rounds.

    What is compiled is compiled before; a whole answer is its own warm-up, the first step apart.
    """
    prompt, new = setting.prompt_tokens, setting.new_tokens
    ids = _prompt(loaded, prompt)
    ours = our_decoders(loaded, prompt + new)
    kept: dict[str, list[Written]] = {}
    works: dict[str, Work] = {
        name: _noting(kept, name, lambda d=decoder: d.write(ids, new))
        for name, decoder in ours.items()
    }
    peers, absent = _peer_works(setting, loaded, ids, new, kept)
    reader = Reader(next(iter(ours.values())).weight_bytes())
    setting.say(f"{row}: {', '.join([*works, *peers])}")
    times = interleaved(works | peers | {"read": reader}, setting.times(rounds), warmups=0)
    bandwidth = max([reader.rate(times["read"]), *read_bandwidths()])
    found = {name: times[name] for name in peers}
    for name, decoder in ours.items():
        read = decode_bytes(
            decoder.weight_bytes(), decoder.cache_bytes_per_token(),
            prompt_tokens=prompt, new_tokens=new,
        )  # fmt: skip
        note = joined([
            decoder.name,
            f"limit: {read / 1e6:,.0f} MB a step at {bandwidth / 1e9:.1f} GB/s",
            agreement(kept, name, peers),
            _whole(kept, name, peers),
            absent,
        ])  # fmt: skip
        limit = 1000 * seconds_to_read(read, bandwidth)
        who = f"{LESSON}, batch 1" if name == LESSON else "batch 1"
        work = f"{row}: {who}, {prompt} + {new} tokens, {words}{'' if name == LESSON else name}"
        yield compared(work, MS, times[name], found, scale=1000, limit=limit, note=note)


def our_decoders(loaded: LoadedModel, max_seq_len: int) -> dict[str, OurDecoder]:
    """Return our decoders by the words that a line ends with."""
    made = {}
    for words, path in ((", weights as they are", "float32"), (", weights packed", "packed")):
        with suppress(KvlabError):  # a path that this machine or dtype can't take
            made[words] = OurDecoder(loaded, max_seq_len=max_seq_len, path=path)
    if made:
        return made
    lesson = OurDecoder(loaded, max_seq_len=max_seq_len, fast=False)
    if loaded.device.type == "cpu" and loaded.dtype != torch.float32:
        with suppress(KvlabError):
            wide = OurDecoder(widened(loaded), max_seq_len=max_seq_len, path="packed")
            return {" weights, computed in float32": wide, LESSON: lesson}
    return {"": lesson}


def widened(loaded: LoadedModel) -> LoadedModel:
    """Return the model with the same numbers, kept in float32; the fast path narrows them again."""
    return replace(loaded, model=deepcopy(loaded.model).float(), dtype=torch.float32)


def _prompt(loaded: LoadedModel, tokens: int) -> Tensor:
    from kvlab.model.sample_text import sample_ids

    return sample_ids(loaded, tokens)


def _noting(kept: dict[str, list[Written]], name: str, write: Any) -> Work:
    """Return a work that keeps what was written and gives the seconds of a step."""

    def work() -> float:
        kept.setdefault(name, []).append(write())
        return kept[name][-1].step_seconds

    return work


def _peer_works(
    setting: Setting, loaded: LoadedModel, ids: Tensor, new: int, kept: dict[str, list[Written]]
) -> tuple[dict[str, Work], str]:
    """Return transformers' works by name, and why one is missing."""
    try:
        model = setting.peer(loaded)
    except Exception as error:  # a peer that can't be loaded is a note, not the end of the bench
        return {}, f"transformers: {reason(error)}"
    works, absent = {}, []
    for way in hf.WAYS:
        if way == "compiled" and (why := hf.can_compile()):
            absent.append(why)
            continue
        try:  # a compiler that fails, fails here, and compiles for the shapes that are measured
            hf.generate(model, *((ids, new) if way == "compiled" else (ids[:, :8], 4)), way)
        except Exception as error:
            absent.append(f"transformers {way}: {reason(error)}")
            continue
        name = f"transformers {way}"
        works[name] = _noting(kept, name, lambda way=way: hf.generate(model, ids, new, way))
    return works, "; ".join(absent)


def agreement(kept: Mapping[str, list[Written]], ours: str, peers: Mapping[str, Work]) -> str:
    """Return how many of our tokens are those of a peer."""
    for name in peers:
        mine, theirs = kept[ours][-1].token_ids, kept[name][-1].token_ids
        same = sum(a == b for a, b in zip(mine, theirs, strict=False))
        return f"{same} of {len(theirs)} tokens as {name}"
    return ""


def _whole(kept: Mapping[str, list[Written]], ours: str, peers: Mapping[str, Work]) -> str:
    """Return the whole answer's seconds, prefill included, beside the best peer's."""
    mine = Times(tuple(w.seconds for w in kept[ours])).median
    every = {n: Times(tuple(w.seconds for w in kept[n][1:] or kept[n])).median for n in peers}
    if not every:
        return f"whole answer {short(mine)} s"
    best = min(every, key=lambda name: every[name])
    return f"whole answer {short(mine)} s, {best} {short(every[best])} s"

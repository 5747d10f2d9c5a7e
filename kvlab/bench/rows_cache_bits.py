"""Row cache-bits: keys and values in fewer bits, ours beside transformers' with the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kvlab.bench.lines import Line, compared
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Work, interleaved

if TYPE_CHECKING:
    from torch import Tensor

    from kvlab.model.load import LoadedModel

TOKENS, STEPS = 2048, 16


def rows(setting: Setting) -> Iterator[Line]:
    """Yield a layer in 8 bits, written and read, then decode steps in 8 and in 4 bits."""
    from kvlab.bench.cache_bits_decode import decode_lines

    loaded = setting.loaded()
    setting.say("cache-bits: quantise and read again")
    yield from fp8_layer_lines(setting, loaded)
    setting.say("cache-bits: decode with a quantised cache")
    yield from decode_lines(setting, loaded)


def fp8_layer_lines(setting: Setting, loaded: LoadedModel) -> Iterator[Line]:
    """Yield the two halves of a layer's work in FP8: many tokens in, and one more with all back."""
    works: dict[str, Work] = {}
    states = layer_states(loaded)
    absent = ""
    for who, make in {"ours": our_fp8, "transformers FP8": peer_fp8}.items():
        try:
            make(loaded)
        except Exception as error:
            absent = f"transformers: {reason(error)}"
            continue
        works[f"{who} in"] = lambda make=make: _into(make(loaded), states)
        works[f"{who} step"] = lambda make=make: _steps(make(loaded), states)
    times = interleaved(works, setting.times(9))
    for half, words in {
        "in": f"{TOKENS:,} tokens put in",
        "step": "one token in, all read",
    }.items():
        peers = {k.rsplit(" ", 1)[0]: t for k, t in times.items() if k.endswith(half)}
        ours = peers.pop("ours")
        work = f"cache-bits: FP8, one layer, {words}"
        yield compared(work, "us", ours, peers, scale=1e6, note=absent or f"{TOKENS:,} tokens held")


def layer_states(loaded: LoadedModel) -> tuple[Tensor, Tensor]:
    """Return made-up keys and values of one layer, (1, num_kv_heads, 2048 + 16, head_dim)."""
    import torch

    config = loaded.model.config
    shape = (1, config.num_kv_heads, TOKENS + STEPS, config.head_dim)
    draw = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=draw), torch.randn(shape, generator=draw)


def our_fp8(loaded: LoadedModel) -> Any:
    """Return one empty layer of our FP8 cache, one scale for the tensor as transformers has it."""
    from kvlab.cache import make_cache

    return make_cache("fp8", num_layers=1, granularity="tensor").layers[0]


def peer_fp8(loaded: LoadedModel) -> Any:
    """Return one empty layer of transformers' own FP8 cache; raises `Unsupported` without it."""
    from kvlab.cache.hf_caches import transformers_cache

    return transformers_cache("fp8", num_layers=1).layers[0]


def _into(layer: Any, states: tuple[Tensor, Tensor]) -> float:
    first = [part[:, :, :TOKENS] for part in states]
    started = perf_counter()
    layer.update(*first)
    return perf_counter() - started


def _steps(layer: Any, states: tuple[Tensor, Tensor]) -> float:
    layer.update(*(part[:, :, :TOKENS] for part in states))
    started = perf_counter()
    for place in range(TOKENS, TOKENS + STEPS):
        layer.update(*(part[:, :, place : place + 1] for part in states))
    return (perf_counter() - started) / STEPS

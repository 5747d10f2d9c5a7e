"""Row cache-bits: keys and values in fewer bits, ours beside transformers' with the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kvlab.bench.lines import Line, compared
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Times, Work, interleaved

if TYPE_CHECKING:
    from torch import Tensor

    from kvlab.model.load import LoadedModel

TOKENS, STEPS = 512, 16
Options = dict[str, Any]
"""Keywords of `generate`."""

BACKENDS = {"quanto": "optimum.quanto", "hqq": "hqq"}
"""transformers' quantising backends -> the package that each needs."""


def rows(setting: Setting) -> Iterator[Line]:
    """Yield quantise, read again and decode in 8 bits, then a decode step in 4."""
    loaded = setting.loaded()
    setting.say("cache-bits: quantise and read again")
    yield from fp8_layer_lines(setting, loaded)
    setting.say("cache-bits: decode with a quantised cache")
    yield fp8_decode_line(setting, loaded)
    yield int4_decode_line(setting, loaded)


def fp8_layer_lines(setting: Setting, loaded: LoadedModel) -> Iterator[Line]:
    """Yield the two halves of a layer's work in FP8: 512 tokens in, and one more with all back."""
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
    for half, words in {"in": f"{TOKENS} tokens put in", "step": "one token in, all read"}.items():
        peers = {k.rsplit(" ", 1)[0]: t for k, t in times.items() if k.endswith(half)}
        ours = peers.pop("ours")
        work = f"cache-bits: FP8, one layer, {words}"
        yield compared(work, "us", ours, peers, scale=1e6, note=absent or f"{TOKENS} tokens held")


def layer_states(loaded: LoadedModel) -> tuple[Tensor, Tensor]:
    """Return made-up keys and values of one layer, (1, num_kv_heads, 512 + 16, head_dim)."""
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


def fp8_decode_line(setting: Setting, loaded: LoadedModel) -> Line:
    """Return a whole decode step with an FP8 cache: ours in our model, theirs in theirs."""
    from kvlab.cache import make_cache
    from kvlab.cache.hf_caches import transformers_cache

    layers = loaded.model.config.num_layers
    return _decode_line(
        setting, loaded, "FP8",
        lambda: make_cache("fp8", num_layers=layers, granularity="tensor"),
        {"transformers FP8": lambda: {"cache": transformers_cache("fp8", num_layers=layers)}}, "",
    )  # fmt: skip


def int4_decode_line(setting: Setting, loaded: LoadedModel) -> Line:
    """Return a whole decode step with a 4-bit cache; the peer needs quanto or HQQ."""
    from kvlab.cache import make_cache

    layers = loaded.model.config.num_layers
    peers = {}
    for backend, package in BACKENDS.items():
        if _is_installed(package):
            config = {"backend": backend, "nbits": 4}
            options = {"cache_implementation": "quantized", "cache_config": config}
            peers[f"transformers {backend}"] = lambda options=options: dict(options)
    absent = "" if peers else "neither quanto nor HQQ is installed: no peer with 4 bits"
    return _decode_line(
        setting, loaded, "int4", lambda: make_cache("int4", num_layers=layers), peers, absent
    )


def _decode_line(
    setting: Setting,
    loaded: LoadedModel,
    name: str,
    ours: Callable[[], Any],
    peers: dict[str, Callable[[], Options]],
    absent: str,
) -> Line:
    from kvlab.model.sample_text import sample_ids

    ids, kept = sample_ids(loaded, TOKENS), dict[str, str]()
    works: dict[str, Work] = {"ours": lambda: _our_step(loaded, ids, ours())}
    for peer, make in peers.items():
        works[peer] = lambda make=make: _peer_step(setting, loaded, ids, make())
    for peer in list(peers):
        try:
            works[peer]()
        except Exception as error:
            del works[peer]
            kept[peer] = f"{peer}: {reason(error)}"
    times: dict[str, Times] = interleaved(works, setting.times(3))
    found = {peer: times[peer] for peer in works if peer != "ours"}
    note = "; ".join(filter(None, [f"after {TOKENS} tokens", absent, *kept.values()]))
    work = f"cache-bits: {name}, a decode step of the model"
    return compared(work, "ms", times["ours"], found, scale=1000, note=note)


def _our_step(loaded: LoadedModel, ids: Tensor, cache: Any) -> float:
    from kvlab.model.decode import generate

    steps = list(generate(loaded.model, ids, max_new_tokens=STEPS + 1, cache=cache))
    return sum(step.seconds for step in steps[1:]) / STEPS


def _peer_step(
    setting: Setting, loaded: LoadedModel, ids: Tensor, options: dict[str, Any]
) -> float:
    from kvlab.bench.peer_transformers import generate_with_options

    written = generate_with_options(setting.peer(loaded), ids, STEPS + 1, options)
    return written.step_seconds


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False

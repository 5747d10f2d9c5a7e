"""Decode steps of the model behind 2,048 tokens: our quantised caches, the full one, theirs.

All of them take turns. Each of ours stands beside the best that transformers has here, and its
bytes are held against the formula in the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kvlab.arithmetic.quantized_bytes import quantized_bytes
from kvlab.bench.lines import Line, compared, joined, short
from kvlab.bench.rows_cache_bits import STEPS, TOKENS
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Work, interleaved

if TYPE_CHECKING:
    from torch import Tensor

    from kvlab.model.load import LoadedModel

OURS: dict[str, dict[str, str]] = {"fp8": {"granularity": "tensor"}, "int8": {}, "int4": {}}
"""Our formats and how they are set: FP8 with one scale, as transformers has it."""

BACKENDS = {"quanto": "optimum.quanto", "hqq": "hqq"}
"""transformers' quantising backends -> the package that each needs."""


def decode_lines(setting: Setting, loaded: LoadedModel) -> Iterator[Line]:
    """Yield a line for each of our formats; the full cache stands in its note."""
    from kvlab.model.sample_text import sample_ids

    ids, held = sample_ids(loaded, TOKENS), dict[str, int]()
    works: dict[str, Work] = {
        name: lambda name=name: _our_step(loaded, ids, name, held) for name in ["growing", *OURS]
    }
    peers, absent = _peers(setting, loaded, ids)
    times = interleaved(works | peers, setting.times(2))
    full = f"our full cache {short(1000 * times['growing'].median)} ms"
    found = {peer: times[peer] for peer in peers}
    for name in OURS:
        size = f"{held[name]:,} bytes held, {as_computed(loaded, name, held[name])}"
        note = joined([size, f"full: {held['growing']:,}", full, absent])
        work = f"cache-bits: {name}, a decode step behind {TOKENS:,} tokens"
        yield compared(work, "ms", times[name], found, scale=1000, note=note)


def as_computed(loaded: LoadedModel, name: str, held: int) -> str:
    """Return whether a cache holds what the formula says for the tokens of such a run."""
    config = loaded.model.config
    expected = quantized_bytes(
        name,
        num_layers=config.num_layers,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        tokens=TOKENS + STEPS,
        bytes_per_element=loaded.dtype.itemsize,
        **OURS[name],
    )
    return "as computed" if held == expected else f"computed: {expected:,}"


def _our_step(loaded: LoadedModel, ids: Tensor, name: str, held: dict[str, int]) -> float:
    from kvlab.cache import make_cache
    from kvlab.model.decode import generate

    cache: Any = make_cache(name, num_layers=loaded.model.config.num_layers, **OURS.get(name, {}))
    steps = list(generate(loaded.model, ids, max_new_tokens=STEPS + 1, cache=cache))
    held[name] = cache.nbytes
    return sum(step.seconds for step in steps[1:]) / STEPS


def _peers(setting: Setting, loaded: LoadedModel, ids: Tensor) -> tuple[dict[str, Work], str]:
    """Return transformers' works that run here, and why others do not."""
    works, absent = dict[str, Work](), list[str]()
    for name, options in _options(loaded).items():
        work = _peer_work(setting, loaded, ids, options)
        try:
            work()
        except Exception as error:
            absent.append(f"{name}: {reason(error)}")
            continue
        works[name] = work
    missing = [backend for backend, package in BACKENDS.items() if not _is_installed(package)]
    if missing:
        absent.append(f"not installed: {', '.join(missing)}")
    return works, "; ".join(absent)


def _options(loaded: LoadedModel) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the keywords of `generate` for each peer, made anew for each run."""
    from kvlab.cache.hf_caches import transformers_cache

    layers = loaded.model.config.num_layers
    found: dict[str, Callable[[], dict[str, Any]]] = {
        "transformers FP8": lambda: {"cache": transformers_cache("fp8", num_layers=layers)}
    }
    for backend, package in BACKENDS.items():
        if _is_installed(package):
            config = {"backend": backend, "nbits": 4}
            options = {"cache_implementation": "quantized", "cache_config": config}
            found[f"transformers {backend} 4-bit"] = lambda options=options: dict(options)
    return found


def _peer_work(
    setting: Setting, loaded: LoadedModel, ids: Tensor, options: Callable[[], dict[str, Any]]
) -> Work:
    from kvlab.bench.peer_transformers import generate_with_options

    def work() -> float:
        model = setting.peer(loaded)
        return generate_with_options(model, ids, STEPS + 1, options()).step_seconds

    return work


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False

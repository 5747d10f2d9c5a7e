"""Row prefill: reading a prompt, beside transformers and beside the matrix rate."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from kvlab.bench.lines import Line, compared, joined
from kvlab.bench.peer_transformers import generate
from kvlab.bench.rates import matrix_rate, multipliers
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Times, Work, interleaved

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel


def rows(setting: Setting) -> Iterator[Line]:
    """Yield the line of a prefill of 512 tokens in float32, and those of a GPU."""
    from kvlab.bench.rows_gpu import prefill_lines

    yield prefill_line(setting, setting.loaded(), setting.prompt_tokens)
    yield from prefill_lines(setting)


def prefill_line(setting: Setting, loaded: LoadedModel, tokens: int) -> Line:
    """Return the line of one prefill; the matrix rate is measured in the same rounds."""
    from kvlab.model.sample_text import sample_ids

    ids = sample_ids(loaded, tokens)
    rates = multipliers(loaded.dtype)
    works: dict[str, Work] = {"ours": our_prefill(loaded, tokens), **rates}
    absent = ""
    try:
        model = setting.peer(loaded)
        works["transformers"] = lambda: generate(model, ids, 1).prefill_seconds
    except Exception as error:
        absent = f"transformers: {reason(error)}"
    setting.say(f"prefill: {', '.join(works)}")
    times = interleaved(works, setting.times(5))
    rate, flops = matrix_rate(rates, times), prefill_flops(loaded, tokens)
    peers: dict[str, Times] = {k: times[k] for k in ("transformers",) if k in times}
    note = joined([
        f"limit: {flops / 1e9:,.0f} GFLOP at {rate / 1e9:,.0f} GFLOP/s, the best matrix product",
        absent,
    ])  # fmt: skip
    return compared(
        f"prefill: {tokens} tokens, float32", "ms", times["ours"], peers,
        scale=1000, limit=1000 * flops / rate, note=note,
    )  # fmt: skip


def our_prefill(loaded: LoadedModel, tokens: int) -> Work:
    """Return the work of our own prefill: a fresh cache, the whole prompt, the next token known."""
    import torch

    from kvlab.cache import make_cache
    from kvlab.model.fast_llama import FastLlama
    from kvlab.model.phases import prefill
    from kvlab.model.sample_text import sample_ids

    ids, model = sample_ids(loaded, tokens), FastLlama(loaded.model)

    def work() -> float:
        cache = make_cache(
            "preallocated", num_layers=loaded.model.config.num_layers, capacity=tokens + 1
        )
        started = perf_counter()
        with torch.no_grad():
            int(prefill(model, ids, cache)[0, -1].argmax())
        return perf_counter() - started

    return work


def prefill_flops(loaded: LoadedModel, tokens: int) -> int:
    """Return the FLOPs that the prefill needs: the head on the last position alone."""
    from kvlab.arithmetic.roofline_work import prefill_work
    from kvlab.model.phase_timing import deployment_of

    (work,) = prefill_work(deployment_of(loaded), tokens)
    return work.flops

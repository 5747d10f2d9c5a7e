"""Row recompute: the same answer with a cache and without, each beside its own limit.

The limit of a pass is the longer of its arithmetic at the measured matrix rate and its reading at
the measured bandwidth; a run is the sum of its passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlab.bench.limits import roofline_seconds
from kvlab.bench.lines import Line, joined
from kvlab.bench.rates import Reader, matrix_rate, multipliers
from kvlab.bench.rows_decode import our_decoders
from kvlab.bench.setting import Setting
from kvlab.bench.timing import Work, interleaved

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

PROMPT, NEW = 64, 64


def rows(setting: Setting) -> Iterator[Line]:
    """Yield two lines: with a cache (the ratio is what it saves), and without."""
    from kvlab.model.sample_text import sample_ids

    loaded = setting.loaded()
    ids = sample_ids(loaded, PROMPT)
    cached = next(iter(our_decoders(loaded, PROMPT + NEW).values()))
    rates, reader = multipliers(), Reader(cached.weight_bytes())
    works: dict[str, Work] = {
        "cached": lambda: cached.write(ids, NEW).seconds,
        "uncached": lambda: cached.write_uncached(ids, NEW).seconds,
        "read": reader,
        **rates,
    }
    setting.say("recompute: with a cache, without")
    times = interleaved(works, setting.times(3))
    speed = {
        "flops_per_second": matrix_rate(rates, times),
        "bytes_per_second": reader.rate(times["read"]),
    }
    weight_bytes = cached.weight_bytes()
    limits = {
        "cached": run_limit(loaded, weight_bytes, cached=True, **speed),
        "uncached": run_limit(loaded, weight_bytes, cached=False, **speed),
    }
    shown = f"{speed['flops_per_second'] / 1e9:,.0f} GFLOP/s"
    shown += f", {speed['bytes_per_second'] / 1e9:.1f} GB/s"
    size = f"{PROMPT} + {NEW} tokens, float32"
    yield Line(
        f"recompute: with a cache, {size}", "s", ours=times["cached"].median,
        peer=times["uncached"].median, peer_name="our own run without a cache",
        limit=limits["cached"], spread=times["cached"].spread,
        note=joined([cached.name, f"limit: pass by pass from {shown}"]),
    )  # fmt: skip
    yield Line(
        f"recompute: without a cache, {size}", "s", ours=times["uncached"].median,
        limit=limits["uncached"], spread=times["uncached"].spread,
        note=f"limit: pass by pass from {shown}",
    )  # fmt: skip


def run_limit(
    loaded: LoadedModel,
    weight_bytes: int,
    *,
    cached: bool,
    flops_per_second: float,
    bytes_per_second: float,
) -> float:
    """Return the least seconds of the whole run: prefill, then one pass for each further token."""
    from kvlab.arithmetic.roofline_work import decode_work, prefill_work
    from kvlab.model.phase_timing import deployment_of

    deployment = deployment_of(loaded)
    works = [prefill_work(deployment, PROMPT)[0]]
    for emitted in range(1, NEW):
        tokens = PROMPT + emitted
        make = decode_work if cached else prefill_work
        works.append(make(deployment, tokens)[0])
    return sum(
        roofline_seconds(
            work.flops,
            weight_bytes + (work.cache_bytes if cached else 0),
            flops_per_second=flops_per_second,
            bytes_per_second=bytes_per_second,
        )
        for work in works
    )

"""Every number of a llama.cpp or ollama log: all cells are taken at the start, so all is exact."""

from collections.abc import Iterator
from dataclasses import replace

from kvlab.arithmetic.llama_cpp import PADDING, llama_cpp_bytes
from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.facts import Fact, Run, unique
from kvlab.arithmetic.logs.finding import DIFFERS, Estimate, Finding, best
from kvlab.arithmetic.logs.pools import Pool, latent_views, pools_of, state_parts
from kvlab.arithmetic.payload import CacheTypes

Findings = Iterator[Finding]
USUAL_UBATCH = (512, 2048, 1024)
"""Values of n_ubatch that are tried where the log does not say; the default first."""


def predict_llama_cpp(run: Run, case: Case) -> Findings:
    """Give one finding for each number that follows from the model and the cells."""
    if case.model is None:
        return
    for total in unique(run.all("cache_bytes")):
        yield from _cache(run, case, total)
    yield from _buffers(run, case)
    yield from _states(run, case)
    yield from _ollama_estimate(run, case)
    yield from _process(run, case)


def _cache(run: Run, case: Case, total: Fact) -> Findings:
    """One line of cache: the pool that it speaks of is the one whose numbers fit best."""
    options = [list(_as_pool(run, total, pool)) for pool in _line_pools(run, case, total)]
    yield from min(options, key=_misfits, default=[])


def _misfits(findings: list[Finding]) -> int:
    return sum(finding.verdict == DIFFERS for finding in findings)


def _as_pool(run: Run, total: Fact, pool: Pool) -> Findings:
    shown = run.beside(total, "cells") or run.last("cells") or run.last("context")
    if shown is None:
        return
    streams_fact = run.beside(total, "streams")
    streams = int(streams_fact.number) if streams_fact else 1
    cells = int(shown.number) * streams
    name = f" in {streams} streams" if streams > 1 else ""
    rule = f"{cells:,} cells{name} x {pool.cell_bytes:,} bytes, {pool.name}"
    yield Finding("cache_bytes", total, Estimate.exactly(cells * pool.cell_bytes, rule))
    for key, size, said in (("k_bytes", pool.k_bytes, "keys"), ("v_bytes", pool.v_bytes, "values")):
        fact = run.beside(total, key)
        if fact is not None:
            rule = f"{cells:,} cells x {size:,} bytes of {said}"
            yield Finding(key, fact, Estimate.exactly(cells * size, rule))
    yield from _cells(run, shown, streams, pool)


def _line_pools(run: Run, case: Case, total: Fact) -> tuple[Pool, ...]:
    """The pools that a line may mean, by its types and its number of layers where it has them."""
    k_type, v_type = (run.beside(total, name) for name in ("k_type", "v_type"))
    key = str(k_type.value) if k_type else None
    value = str(v_type.value) if v_type else None
    pools = pools_of(case, key, value)
    layers = run.beside(total, "layers")
    if layers is not None:
        same = tuple(pool for pool in pools if len(pool.layers) == layers.number)
        pools = same or pools
    types = CacheTypes.of(key or case.settings.cache_dtype, value or key)
    return tuple(view for pool in pools for view in latent_views(pool, types))


def _cells(run: Run, cells: Fact, streams: int, pool: Pool) -> Findings:
    """How many cells there are: the context shared out, padded; windows with room for a batch."""
    context, sequences = run.whole("context"), run.whole("sequences") or 1
    beside = run.beside(cells, "seqs")
    sequences = int(beside.number) if beside else sequences
    if not context or cells.name != "cells":
        return
    per_stream = _padded(-(-context // streams))
    estimates = [Estimate.exactly(per_stream, f"{context:,} of context over {streams} stream(s)")]
    if pool.window:
        ubatches = (run.whole("ubatch"),) if run.whole("ubatch") else USUAL_UBATCH
        windows = pool.window * (sequences if streams == 1 else 1)
        estimates = [
            Estimate.exactly(
                min(per_stream, _padded(windows + batch)),
                f"window {pool.window:,} x {windows // pool.window} sequence(s) + batch {batch:,}",
            )
            for batch in ubatches
        ] + estimates
    yield best("cells", cells, estimates)


def _padded(cells: int) -> int:
    return -(-cells // PADDING) * PADDING


def _buffers(run: Run, case: Case) -> Findings:
    """A buffer of one device holds whole layers."""
    buffers = run.all("buffer_bytes")
    cells = run.last("cells") or run.last("context")
    pools = pools_of(case)
    if not buffers or cells is None or not pools:
        return
    if run.engine == "ollama":
        yield from _ollama_total(run, case, buffers)
        return
    each = int(cells.number) * pools[0].cell_bytes / len(pools[0].layers)
    for fact in unique(buffers):
        count = max(round(fact.number / each), 0)
        yield Finding("buffer_bytes", fact, Estimate.exactly(count * each, f"{count} layers"))


def _ollama_total(run: Run, case: Case, buffers: tuple[Fact, ...]) -> Findings:
    """ollama's own engine prints what each device holds; its latest word for each counts."""
    each = {str(d.value): f for f in buffers if (d := run.beside(f, "device"))}
    total, half = (sum(getattr(f, n) for f in each.values()) for n in ("number", "half_step"))
    first = buffers[0]
    printed = " + ".join(fact.printed for fact in each.values())
    fact = replace(first, name="devices_bytes", value=total, half_step=half, printed=printed)
    if (estimate := _whole_context(run, case)) is not None and each:
        yield Finding("devices_bytes", fact, estimate)


def _states(run: Run, case: Case) -> Findings:
    for fact in unique(run.all("state_bytes")):
        cells = run.beside(fact, "state_cells")
        copies = run.beside(fact, "rollbacks")
        slots = (int(cells.number) if cells else 1) * (1 + (int(copies.number) if copies else 0))
        size = slots * sum(state_parts(case.model, case.settings.tp)) if case.model else 0
        yield Finding(
            "state_bytes", fact, Estimate.exactly(size, f"{slots} slots of state in fp32")
        )


def _ollama_estimate(run: Run, case: Case) -> Findings:
    """ollama's own figure before it starts llama.cpp."""
    fact, estimate = run.last("estimate_bytes"), _whole_context(run, case)
    if fact is not None and estimate is not None:
        yield Finding("estimate_bytes", fact, estimate)


def _whole_context(run: Run, case: Case) -> Estimate | None:
    """The whole context, not padded; windowed layers share cells between the requests."""
    context = run.whole("context") or run.whole("cells")
    if context is None or case.model is None:
        return None
    sequences = run.whole("sequences") or 1
    dtype = case.settings.cache_dtype
    made = llama_cpp_bytes(
        case.model, context=context, sequences=sequences, cache_dtype=dtype, unified=True
    )
    exact = (made.kv_bytes + made.swa_bytes) * context // _padded(context)
    rule = f"{context:,} tokens"
    if made.swa_cells:
        rule += f" for {sequences} request(s), windowed layers in {made.swa_cells:,} cells"
    return Estimate.exactly(exact, rule)


def _process(run: Run, case: Case) -> Findings:
    """What a process takes with windows kept and not kept: their difference is mostly cache."""
    full, less = run.last("process_full"), run.last("process_swa")
    context = run.whole("context") or run.whole("max_model_len")
    if full is None or less is None or context is None or case.model is None:
        return
    sizes = [
        llama_cpp_bytes(
            case.model, context=context, cache_dtype=case.settings.cache_dtype, swa_full=kept
        )
        for kept in (True, False)
    ]
    gap = replace(
        full,
        name="saved_by_windows",
        value=full.number - less.number,
        printed=f"{(full.number - less.number) / full.scale:,.0f} MiB",
        half_step=full.half_step + less.half_step,
    )
    rule = "cells that the windowed layers do not keep"
    saved = sizes[0].total_bytes - sizes[1].total_bytes
    yield Finding("saved_by_windows", gap, Estimate.exactly(saved, rule))

"""Every number of the logs of SGLang and TensorRT-LLM, and of published sizes."""

from collections.abc import Iterator
from dataclasses import replace

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.facts import Fact, Run, unique
from kvlab.arithmetic.logs.finding import DIFFERS, Estimate, Finding, best
from kvlab.arithmetic.logs.pools import Pool, pools_of, state_parts
from kvlab.arithmetic.storage import ModelStorage
from kvlab.arithmetic.units import GB, GIB, MB, MIB

Findings = Iterator[Finding]
FREE_FRACTION = 0.9
"""Share of the free memory that TensorRT-LLM gives to its cache unless told otherwise."""


def predict_sglang(run: Run, case: Case) -> Findings:
    """K and V size from the printed tokens: each pool has one page more than it offers."""
    pools = pools_of(case)
    for tokens in run.all("kv_tokens"):
        yield from _sglang_line(run, case, tokens, pools)
    yield from _windowed_share(run)
    yield from _sglang_states(run, case)


def _sglang_line(run: Run, case: Case, tokens: Fact, pools: tuple[Pool, ...]) -> Findings:
    cells = int(tokens.number) + case.settings.block_size
    sizes = {name: run.beside(tokens, name) for name in ("k_bytes", "v_bytes", "kv_bytes")}
    options = [list(_sizes(pool, cells, sizes)) for pool in pools]
    fitting = (found for found in options if all(f.verdict != DIFFERS for f in found))
    yield from next(fitting, options[0] if options else [])


def _sizes(pool: Pool, cells: int, sizes: "dict[str, Fact | None]") -> Findings:
    bytes_of = {"k_bytes": pool.k_bytes, "v_bytes": pool.v_bytes, "kv_bytes": pool.cell_bytes}
    for name, fact in sizes.items():
        if fact is not None:
            rule = f"{cells:,} cells (tokens and one page) x {bytes_of[name]:,} bytes, {pool.name}"
            yield Finding(name, fact, Estimate.exactly(cells * bytes_of[name], rule))


def _windowed_share(run: Run) -> Findings:
    windowed, full = run.last("windowed_tokens"), run.last("full_tokens")
    if windowed and full:
        ratio = run.last("swa_ratio")
        share = ratio.number if ratio else 0.8
        rule = f"{share:g} of the tokens of the layers without a window"
        yield Finding("windowed_tokens", windowed, Estimate.exactly(full.number * share, rule))


def _sglang_states(run: Run, case: Case) -> Findings:
    slots = run.last("slots")
    if slots is None or case.model is None:
        return
    recurrent = state_parts(case.model, case.settings.tp)[1]
    count = int(slots.number) + 1
    fact = run.beside(slots, "ssm_bytes")
    if fact and recurrent:
        rule = f"{count} slots (one is spare) of recurrent state in fp32"
        yield Finding("ssm_bytes", fact, Estimate.exactly(count * recurrent, rule))


def predict_tensorrt_llm(run: Run, case: Case) -> Findings:
    """Bytes from tokens, tokens from blocks, bytes from free memory."""
    if case.settings.equal_widths:
        case = case.remodelled(equal_widths)
    pools = pools_of(case)
    for size in unique(run.all("cache_bytes")):
        tokens = run.beside(size, "kv_tokens") or run.last("kv_tokens")
        if tokens and pools:
            rule = f"{tokens.number:,} tokens x {pools[0].cell_bytes:,} bytes"
            value = tokens.number * pools[0].cell_bytes
            yield Finding("cache_bytes", size, Estimate.exactly(value, rule))
    blocks, tokens = run.last("num_blocks"), run.last("kv_tokens")
    if blocks and tokens:
        size = case.settings.block_size
        estimate = Estimate.exactly(blocks.number * size, f"blocks x {size} tokens")
        yield Finding("kv_tokens", tokens, estimate)
    yield from _free_memory(run)


def equal_widths(model: ModelStorage) -> ModelStorage:
    """Return the model with values as wide as keys, as TensorRT-LLM's paged cache keeps them."""
    layers = tuple(
        replace(x, k_dim=max(x.k_dim, x.v_dim), v_dim=max(x.k_dim, x.v_dim))
        if x.kind in ("full", "windowed", "chunked")
        else x
        for x in model.layers
    )
    return replace(model, layers=layers)


def _free_memory(run: Run) -> Findings:
    free, sizes = run.last("available"), run.all("cache_bytes")
    if free and sizes:
        fraction = run.last("fraction")
        share = fraction.number if fraction else FREE_FRACTION
        estimate = Estimate.over(free, lambda memory: memory * share, f"free memory x {share:g}")
        yield Finding("cache_bytes", sizes[-1], estimate)


def predict_published(run: Run, case: Case) -> Findings:
    """A published size may mean GB or GiB, and its "k" 1,000 or 1,024 tokens: all are tried."""
    pools = pools_of(case)
    for fact in map(_rounded, run.all("published_bytes")):
        tokens = run.beside(fact, "published_tokens")
        if tokens is not None and pools:
            yield best("published_bytes", fact, _readings(run, fact, tokens, pools[0]))


def _rounded(fact: Fact) -> Fact:
    """A table rounds to a digit or two: zeros at the end of a whole number say nothing."""
    digits = fact.printed.split()[0].replace(",", "")
    if "." in digits:
        return fact
    zeros = len(digits) - len(digits.rstrip("0"))
    return replace(fact, half_step=fact.scale * 10**zeros / 2)


def _readings(run: Run, fact: Fact, tokens: Fact, pool: Pool) -> Iterator[Estimate]:
    thousand = run.beside(fact, "thousand")
    counts = (1000, 1024) if thousand and thousand.value else (1,)
    other = {GB: GIB, MB: MIB, GIB: GB, MIB: MB}.get(int(fact.scale), int(fact.scale))
    names = {GB: "GB", GIB: "GiB", MB: "MB", MIB: "MiB"}
    for meant in (int(fact.scale), other):
        for count in counts:
            held = int(tokens.number) * count
            read = "" if meant == fact.scale else f", {fact.printed} read as {names[meant]}"
            rule = f"{held:,} tokens x {pool.cell_bytes:,} bytes{read}"
            yield Estimate.exactly(held * pool.cell_bytes * fact.scale / meant, rule)

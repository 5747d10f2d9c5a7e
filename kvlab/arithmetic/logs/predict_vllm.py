"""Every number of a vLLM log, from the model's config and the memory that the log prints."""

from collections.abc import Iterator
from functools import partial

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.facts import Fact, Run, unique
from kvlab.arithmetic.logs.finding import Estimate, Finding, best
from kvlab.arithmetic.logs.vllm_views import USUAL_BATCHED, View, views

Findings = Iterator[Finding]


def predict_vllm(run: Run, case: Case) -> Findings:
    """Give one finding for each number that follows from the others."""
    pool = views(case)
    yield from _budget(run)
    if pool is not None:
        yield from _from_memory(run, case, pool)
        yield from _swap_blocks(run, case, pool)
    yield from _tokens_of_blocks(run, case, pool)
    yield from _concurrency(run, case, pool)


def _budget(run: Run) -> Findings:
    """Memory for the cache is what is left of the budget; graphs may come on top of it."""
    budget, total, share = run.last("budget"), run.last("total"), run.last("utilization")
    available = run.last("available")
    if budget is None or available is None:
        return
    parts = [run.last(name) for name in ("weights", "activation", "non_torch")]
    known = [part for part in parts if part is not None]
    if len(known) < 3:
        return
    whole = total.number * share.number if total and share else budget.number
    half = budget.half_step + sum(part.half_step for part in known)
    left = whole - sum(part.number for part in known)
    rule = "budget - weights - activation peak - non-torch memory"
    plain = Estimate(left, left - half, left + half, rule)
    graphs = run.last("graphs")
    yield best("available", available, [plain]).because(*_graphs_say(graphs, plain, available))


def _graphs_say(graphs: Fact | None, plain: Estimate, available: Fact) -> tuple[str, ...]:
    if graphs is None:
        return ()
    less = Estimate(
        plain.value - graphs.number, plain.low - graphs.high, plain.high - graphs.low, ""
    )
    if plain.fits(available):
        gib = less.value / graphs.scale
        return (
            f"CUDA graphs ({graphs.printed}) are not taken out of the budget in this version: they"
            f" come on top of it; subtracting them too would leave {gib:.2f} GiB",
        )
    if less.fits(available):
        return (f"CUDA graphs ({graphs.printed}) are taken out of the budget in this version",)
    return ()


def _from_memory(run: Run, case: Case, pool: tuple[View, ...]) -> Findings:
    for available, tokens in _pairs(run, case, "kv_tokens"):
        yield best("kv_tokens", tokens, _token_estimates(case, pool, available))
    for available, blocks in _pairs(run, case, "num_blocks"):
        rule = "available memory / bytes of one block"
        formula = lambda memory: min(view.blocks(memory) for view in pool)  # noqa: E731
        yield best("num_blocks", blocks, [Estimate.over(available, formula, rule)])
    yield from _refusal(run, case, pool)


def _pairs(run: Run, case: Case, name: str) -> list[tuple[Fact, Fact]]:
    """Memory and count belong together rank by rank; else the least memory decides.

    Ranks print in any order; a single one prints its memory above the count, so that a later
    start in the same paste does not speak for it.
    """
    memory, counts = run.all("available"), run.all(name)
    if not memory or not counts:
        return []
    if len(memory) == len(counts):
        pairs = list(zip(memory, counts, strict=True))
        return list({(m.value, c.value): (m, c) for m, c in pairs}.values())
    if case.settings.tp > 1:
        least = min(memory, key=lambda fact: fact.number)
        return [(least, count) for count in unique(counts)]
    return [(_memory_above(run, name, count), count) for count in unique(counts)]


def _memory_above(run: Run, name: str, count: Fact) -> Fact:
    """The least of the memory lines nearest above a count; without any, the least of all."""
    nearest: list[Fact] = []
    is_closed = False
    for fact in run.facts:
        if fact.position >= count.position:
            break
        if fact.name == "available":
            nearest, is_closed = ([fact] if is_closed else [*nearest, fact]), False
        elif fact.name == name:
            is_closed = bool(nearest)
    return min(nearest or run.all("available"), key=lambda fact: fact.number)


def _token_estimates(case: Case, pool: tuple[View, ...], memory: Fact) -> Iterator[Estimate]:
    groups = pool[0].num_groups
    shared = f", shared out over {groups} groups of layers" if groups > 1 else ""
    rule = f"available memory in whole blocks of {pool[0].block_size} tokens{shared}"
    yield Estimate.over(memory, lambda m: min(view.tokens(m) for view in pool), rule)
    length = case.settings.max_model_len
    said = f"concurrency x {length or 0:,}, as newer versions print it"
    full = lambda m, b: min(int(v.concurrency(m, length, b) * length) for v in pool)  # noqa: E731
    for batched in _batched(case) if length else ():
        yield Estimate.over(memory, partial(full, b=batched), said)


def _batched(case: Case) -> tuple[int, ...]:
    given = case.settings.max_batched_tokens
    return (given,) if given else USUAL_BATCHED


def _refusal(run: Run, case: Case, pool: tuple[View, ...]) -> Findings:
    """Too small a cache: what one request needs, and the longest that would fit."""
    length, needed = case.settings.max_model_len, run.last("needed")
    if length and needed:
        rule = f"blocks of one request of {length:,} tokens"
        estimates = [
            Estimate.exactly(max(view.request_bytes(length, b) for view in pool), rule)
            for b in _batched(case)
        ]
        yield best("needed", needed, estimates)
    longest, available = run.last("estimated_max_len"), run.last("available")
    if longest and available:
        rule = "the longest request whose blocks fit into the available memory"
        one, less = pool[0].block_bytes, f"{rule}, less the block that newer versions hold back"
        fits = lambda m, b, h: min(view.longest(m - h, b) for view in pool)  # noqa: E731
        estimates = [
            Estimate.over(available, partial(fits, b=b, h=h), said)
            for h, said in ((0, rule), (one, less))
            for b in _batched(case)
        ]
        yield best("estimated_max_len", longest, estimates)


def _swap_blocks(run: Run, case: Case, pool: tuple[View, ...]) -> Findings:
    for blocks in unique(run.all("cpu_blocks")):
        count = case.settings.swap_bytes // max(view.block_bytes for view in pool)
        gib = case.settings.swap_bytes / 2**30
        rule = f"swap space of {gib:g} GiB a rank / bytes of one block"
        if blocks.number:
            yield Finding("cpu_blocks", blocks, Estimate.exactly(count, rule))


def _tokens_of_blocks(run: Run, case: Case, pool: tuple[View, ...] | None) -> Findings:
    blocks, tokens = run.last("num_blocks"), run.last("kv_tokens")
    if blocks is None or tokens is None:
        return
    groups, size = (pool[0].num_groups, pool[0].block_size) if pool else (1, None)
    size = size or case.settings.block_size
    value = int(blocks.number) // groups * size
    yield Finding("kv_tokens", tokens, Estimate.exactly(value, f"blocks x {size} tokens"))


def _concurrency(run: Run, case: Case, pool: tuple[View, ...] | None) -> Findings:
    printed, length = run.last("max_concurrency"), case.settings.max_model_len
    if printed is None or not length:
        return
    if pool is None or case.settings.every_request_alike:
        tokens = run.last("kv_tokens")
        size = case.settings.block_size
        if tokens is not None:
            value = tokens.number / (-(-length // size) * size if pool is None else length)
            rule = "tokens / longest request"
            yield Finding("max_concurrency", printed, Estimate.exactly(value, rule))
        return
    yield best("max_concurrency", printed, _concurrency_estimates(run, case, pool, length))


def _concurrency_estimates(
    run: Run, case: Case, pool: tuple[View, ...], length: int
) -> Iterator[Estimate]:
    view = pool[0]
    for batched in _batched(case):
        each = view.request_blocks(length, batched)
        low, high = _known_blocks(run, view)
        rule = f"blocks of the pool / {each:,} blocks of one request of {length:,} tokens"
        if view.depends_on_batched:
            rule += f", {batched:,} batched tokens"
            rule += "" if case.settings.max_batched_tokens else " (assumed)"
        yield Estimate(low / each, low / each, high / each, rule)


def _known_blocks(run: Run, view: View) -> tuple[float, float]:
    """Blocks of the pool: printed, or behind the printed tokens, or in the printed memory."""
    if blocks := run.last("num_blocks"):
        return blocks.number, blocks.number
    if tokens := run.last("kv_tokens"):
        least = tokens.number // view.block_size * view.num_groups
        return least, least + view.num_groups - 1
    memory = run.last("available")
    return (view.blocks(memory.low), view.blocks(memory.high)) if memory else (0, 0)

"""Settings that a log may not show and that change its numbers: tried when a number differs."""

from collections.abc import Iterator
from dataclasses import replace

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.facts import Run
from kvlab.arithmetic.logs.vllm_views import full_everywhere, views
from kvlab.arithmetic.storage import STATE

TPS = (2, 4, 8, 16)
DTYPES = ("fp8", "fp32", "bf16")
BLOCKS = (32, 64, 128, 256)
STEPS = (16, 64, 128)
"""Tokens to which a platform may round the block of attention layers beside states."""


def alternatives(run: Run, case: Case) -> Iterator[tuple[str, Case]]:
    """Give "words, case" for each other setting that may be behind a number, likely ones first."""
    if case.model is None:
        return
    assumed = {said.partition("=")[0] for said in case.settings.assumed}
    for dtype in () if run.all("cache_dtype") or run.all("k_type") else DTYPES:
        if dtype != case.settings.cache_dtype:
            yield f"a cache in {dtype}", case.setting(cache_dtype=dtype)
    if "tp" in assumed:
        for tp in TPS:
            yield f"tensor parallelism over {tp} ranks", case.setting(tp=tp)
    if "block_size" in assumed:
        for size in BLOCKS:
            yield f"blocks of {size} tokens", case.setting(block_size=size)
    if case.settings.engine == "vllm":
        yield from _vllm(case)


def _vllm(case: Case) -> Iterator[tuple[str, Case]]:
    older = "groups of layers as versions before the 1.5 padding rule form them (1.25)"
    yield older, case.setting(padding_limit=1.25)
    full = "every layer charged as full attention (no hybrid groups)"
    yield full, case.remodelled(full_everywhere)
    if case.model and any(layer.kind == STATE for layer in case.model.layers):
        yield from _drafting(case)


def _drafting(case: Case) -> Iterator[tuple[str, Case]]:
    """Drafted tokens: the draft layers join the pool, every state takes a slot for each token."""
    for model, words in ((case.with_mtp, "the draft (MTP) layers counted"), (case.model, "")):
        if model is None:
            continue
        drafted = replace(case, model=model)
        shown = views(drafted)
        natural = shown[0].block_size if shown else 16
        for step in STEPS:
            block = -(-natural // step) * step
            for tokens in range(9):
                changed = drafted.setting(block_size=block, speculative_tokens=tokens)
                parts = [words, f"{tokens + 1} state slot(s) a request", f"pages of {block} tokens"]
                yield ", ".join(filter(None, parts)) + " (fitted)", changed

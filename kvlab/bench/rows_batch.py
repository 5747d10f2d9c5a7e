"""Row batch: 1, 8 and 32 requests of mixed lengths at once, through a paged cache."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kvlab.bench import peer_transformers as hf
from kvlab.bench.lines import Line, compared, joined
from kvlab.bench.ours import serve_seconds
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Times, Work, interleaved

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

SIZES = (1, 8, 32)
NEW, SHORTEST, LONGEST = 16, 32, 256
UNIT = "new tokens/s"
CACHE_BYTES = 400_000_000
"""vLLM's pool: all 32 requests at their full length fit."""


def rows(setting: Setting) -> Iterator[Line]:
    """Yield a line for each size; transformers' paged cache in the better of two settings."""
    loaded = setting.loaded()
    vllm = _Vllm(setting)
    try:
        page = None
        for size in SIZES:
            prompts = mixed_prompts(size, loaded.model.config.vocab_size)
            peers, absent, page = _peers(setting, loaded, prompts, page)
            yield _line(setting, loaded, prompts, peers | vllm.works(prompts), [absent, vllm.note])
            for work in peers.values():
                getattr(work, "close", _nothing)()
    finally:
        vllm.stop()


def mixed_prompts(count: int, vocab_size: int, seed: int = 0) -> list[list[int]]:
    """Return prompts of 32 to 256 made-up tokens; the first of a longer list are the same.

    >>> mixed_prompts(2, 1000) == mixed_prompts(8, 1000)[:2]
    True
    """
    rng = random.Random(f"mixed {seed}")
    lengths = [rng.randint(SHORTEST, LONGEST) for _ in range(32)]
    return [
        [random.Random(f"{seed} {row} {i}").randrange(5, vocab_size) for i in range(length)]
        for row, length in enumerate(lengths[:count])
    ]


def _line(
    setting: Setting,
    loaded: LoadedModel,
    prompts: list[list[int]],
    peers: dict[str, Work],
    notes: list[str],
) -> Line:
    """Measure one size; seconds become new tokens a second, over the whole run of the batch."""
    works: dict[str, Work] = {"ours": lambda: serve_seconds(loaded, prompts, NEW), **peers}
    setting.say(f"batch of {len(prompts)}: {', '.join(works)}")
    seconds = interleaved(works, setting.times(2))
    rates = {
        name: Times(tuple(NEW * len(prompts) / taken for taken in times.values))
        for name, times in seconds.items()
    }
    read = sum(map(len, prompts))
    from kvlab.model.fast_llama import paged_model

    fast = paged_model(loaded.model) is not loaded.model
    path = "the fast path" if fast else "the lesson's way"
    note = joined([f"{read:,} prompt tokens; ours by {path}, blocks of 16", *notes])
    work = f"batch: {len(prompts)} at once, prompts of {SHORTEST} to {LONGEST}, {NEW} new, float32"
    return compared(work, UNIT, rates["ours"], {name: rates[name] for name in peers}, note=note)


def _peers(
    setting: Setting, loaded: LoadedModel, prompts: list[list[int]], page: Any
) -> tuple[dict[str, Work], str, Any]:
    """Return transformers' works, why one is missing, and the setting of pages that was better."""
    try:
        model = setting.peer(loaded)
        works: dict[str, Work] = {
            "transformers generate, padded": lambda: hf.generate_padded(model, prompts, NEW)
        }
        if page is None and len(prompts) > 1:
            page = _better_pages(model, prompts)
        size, budget = page or hf.PAGES[0]
        name = f"transformers generate_batch, pages of {size}"
        works[name] = hf.PagedPeer(model, prompts, NEW, size, budget)
    except Exception as error:
        return {}, f"transformers: {reason(error)}", page
    return works, "", page


def _better_pages(model: Any, prompts: list[list[int]]) -> tuple[int, int]:
    """Return the setting with which transformers serves these prompts faster: each tried twice."""
    found = {}
    for page, budget in hf.PAGES:
        trial = hf.PagedPeer(model, prompts, NEW, page, budget)
        trial()
        found[page, budget] = trial()
        trial.close()
    return min(found, key=lambda key: found[key])


class _Vllm:
    """vLLM on the processor, where its environment is there and the row was named."""

    def __init__(self, setting: Setting) -> None:
        self.engine: Any = None
        self.note = self._start(setting)

    def works(self, prompts: list[list[int]]) -> dict[str, Work]:
        """Return the work of serving these prompts; none without the engine."""
        if self.engine is None:
            return {}
        return {"vLLM on the CPU, eager": lambda: self._serve(prompts)}

    def stop(self) -> None:
        """End the engine."""
        if self.engine is not None:
            self.engine.stop()

    def _serve(self, prompts: list[list[int]]) -> float:
        from kvlab.serving.request import prompt

        asked = [prompt(number, ids, NEW) for number, ids in enumerate(prompts)]
        load = self.engine.send(asked, remap=False, watch_every=60.0)
        if any(answer.error for answer in load.answers.values()):
            raise RuntimeError(next(a.error for a in load.answers.values() if a.error))
        return float(load.seconds)

    def _start(self, setting: Setting) -> str:
        from importlib.util import find_spec

        if find_spec("kvlab.serving.engines") is None:
            return "vLLM: this package starts no engines"
        from kvlab.serving.engines.environments import find_environment
        from kvlab.serving.engines.running import start
        from kvlab.serving.engines.vllm import VllmPlan

        if find_environment("vllm") is None:
            return "vLLM is not installed beside the course: not measured"
        if not setting.named:
            return "vLLM is measured with --only batch: its start takes half a minute"
        try:
            self.engine = start(
                VllmPlan("smollm2", prefix_caching=False, cache_bytes=CACHE_BYTES), progress=False
            )
        except Exception as error:
            return f"vLLM: {reason(error)}"
        return ""


def _nothing() -> None:
    return None

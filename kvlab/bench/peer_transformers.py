"""transformers as a peer: the same weights from the same folder, in its own best settings.

`generate` with each cache that it has, compiled too where a C++ compiler is found; and its
continuous batching over a paged cache. Its own timing is taken token by token, by a stopping
criterion that never stops: that costs microseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import contextmanager
from shutil import which
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from kvlab.bench.ours import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from kvlab.model.load import LoadedModel

WAYS = ("dynamic", "static", "compiled")
"""Caches of `generate`: grown, pre-allocated, and pre-allocated with the step compiled."""

PAGES = ((32, 512), (256, 512))
"""Settings of the paged cache that are tried: tokens of a page, tokens of a step."""


def load_peer(loaded: LoadedModel) -> Any:
    """Return transformers' model with the weights, dtype and device of ours.

    Only safetensors are read, nothing is fetched, no remote code runs.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as quieter

    quieter.set_verbosity_error()
    quieter.disable_progress_bar()
    made = AutoModelForCausalLM.from_pretrained(
        loaded.source,
        dtype=loaded.dtype,
        attn_implementation="sdpa",
        use_safetensors=True,
        trust_remote_code=False,
        local_files_only=True,
    )
    return made.to(loaded.device).eval()


def can_compile() -> str:
    """Return why a step can't be compiled here, "" where it can.

    >>> isinstance(can_compile(), str)
    True
    """
    if which("c++") or which("g++") or which("clang++") or which("cl"):
        return ""
    return "not compiled: no C++ compiler is here"


def generate(model: Any, ids: Tensor, new_tokens: int, way: str = "dynamic") -> Written:
    """Write `new_tokens` greedily with transformers' `generate`, a cache of the kind `way`."""
    return generate_with_options(model, ids, new_tokens, _options(way, ids.is_cuda))


@torch.no_grad()
def generate_with_options(
    model: Any, ids: Tensor, new_tokens: int, options: dict[str, Any]
) -> Written:
    """Write `new_tokens` greedily; `options` go to `generate`, a cache among them."""
    from transformers import StoppingCriteriaList

    ticks = _ticks(ids.is_cuda)
    started = perf_counter()
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new_tokens,
        min_new_tokens=new_tokens,
        do_sample=False,
        pad_token_id=0,
        stopping_criteria=StoppingCriteriaList([ticks]),
        **options,
    )
    times = ticks.times
    steps = (times[-1] - times[0]) / max(1, len(times) - 1)
    return Written(times[0] - started, steps, out[0, ids.shape[1] :].tolist())


def _ticks(is_cuda: bool) -> Any:
    from transformers import StoppingCriteria

    class Ticks(StoppingCriteria):
        """Notes the time of each token and never stops."""

        def __init__(self) -> None:
            self.times: list[float] = []

        def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
            if is_cuda:
                torch.cuda.synchronize()
            self.times.append(perf_counter())
            return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)

    return Ticks()


def _options(way: str, is_cuda: bool) -> dict[str, Any]:
    if way == "dynamic":
        return {}
    if way == "static":
        return {"cache_implementation": "static", "disable_compile": True}
    from transformers import CompileConfig

    config = CompileConfig(mode="reduce-overhead" if is_cuda else "default")
    config._compile_all_devices = True  # generate compiles on a CPU only where it is told so
    return {"cache_implementation": "static", "compile_config": config}


@torch.no_grad()
def generate_padded(model: Any, prompts: Sequence[Sequence[int]], new_tokens: int) -> float:
    """Return the seconds of one `generate` over all prompts, padded at the left to one length."""
    longest = max(map(len, prompts))
    ids = torch.zeros(len(prompts), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask[row, longest - len(prompt) :] = 1
    ids, mask = ids.to(model.device), mask.to(model.device)
    started = perf_counter()
    model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=new_tokens,
        min_new_tokens=new_tokens,
        do_sample=False,
        pad_token_id=0,
    )
    return perf_counter() - started


class PagedPeer:
    """transformers' `generate_batch` with a manager that stays: only the first call warms up."""

    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], new_tokens: int, page: int, budget: int
    ) -> None:
        from transformers import ContinuousBatchingConfig, GenerationConfig

        self.model, self.prompts, self.new_tokens = model, [list(p) for p in prompts], new_tokens
        blocks = sum(-(-(len(prompt) + new_tokens) // page) for prompt in prompts) + 4
        self.pool = ContinuousBatchingConfig(
            page_size=page,
            num_blocks=blocks,
            max_batch_tokens=budget,
            allow_block_sharing=False,
            auto_switch_to_flash=model.device.type == "cuda",
        )
        self.greedy = GenerationConfig(
            max_new_tokens=new_tokens, do_sample=False, eos_token_id=-1, pad_token_id=0
        )
        self.is_warm = False

    def __call__(self) -> float:
        """Serve all prompts and return the seconds; the first call also warms up: drop it."""
        with _silent():
            started = perf_counter()
            done = self.model.generate_batch(
                self.prompts,
                generation_config=self.greedy,
                continuous_batching_config=self.pool,
                persistent_manager=True,
                warmup=not self.is_warm,
            )
            seconds = perf_counter() - started
        self.is_warm = True
        if any(len(answer.generated_tokens) != self.new_tokens for answer in done.values()):
            raise RuntimeError("transformers stopped before all answers were complete")
        return seconds

    def close(self) -> None:
        """Stop the manager."""
        self.model.destroy_cached_continuous_batching_manager()


@contextmanager
def _silent() -> Iterator[None]:
    """Keep its warnings about persistent managers out of the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)

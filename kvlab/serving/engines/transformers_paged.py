"""A third engine, with nothing to install: transformers' own paged cache and continuous batching.

It runs in this process, on our device. Its pool is one tensor: the blocks, and two more that only
padding is written to. Models with windows in some layers share it out differently and are refused.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any, NamedTuple

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.serving.engines.clients import prompt_ids
from kvlab.serving.engines.faults import EngineFailed
from kvlab.serving.engines.models import model_folder, storage_of
from kvlab.serving.engines.served import ServedAnswer
from kvlab.serving.request import Request

ALIGNMENT, SPARE_BLOCKS, LEAST_PAGE = 128, 2, 4
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class PagesPrediction(NamedTuple):
    """What the formulas say of the pool: bytes of a block, all blocks, and the whole tensor."""

    block_bytes: int
    num_blocks: int
    tokens: int
    total_bytes: int


class PoolLook(NamedTuple):
    """One look at the pool while it works; blocks kept for prefixes count as used."""

    seconds: float
    used_blocks: int


@dataclass(frozen=True)
class TransformersPlan:
    """Settings of transformers' paged cache: `page_size` tokens a block, `num_blocks` blocks.

    >>> TransformersPlan("tiny", page_size=16, num_blocks=40).predict()
    PagesPrediction(block_bytes=16384, num_blocks=40, tokens=640, total_bytes=688128)
    """

    model: str = "tiny"
    dtype: str = "float32"
    page_size: int = 32
    num_blocks: int = 64
    max_batch_tokens: int = 256
    prefix_caching: bool = True

    def __post_init__(self) -> None:
        whole_number("page_size", self.page_size, minimum=LEAST_PAGE)
        whole_number("num_blocks", self.num_blocks)
        whole_number("max_batch_tokens", self.max_batch_tokens)
        if self.dtype not in BYTES:
            raise InvalidArgument("dtype", self.dtype, f"must be one of {', '.join(BYTES)}")

    def predict(self) -> PagesPrediction:
        """Return the pool that the formulas expect, its spare blocks included in the bytes."""
        model = storage_of(self.model)
        if any(layer.kind != "full" for layer in model.layers):
            raise Unsupported(f"{self.model}: the pool of a model with windows is not predicted")
        block = model.elements_per_token * BYTES[self.dtype] * self.page_size
        aligned = lcm(block, ALIGNMENT)
        blocks = self.num_blocks * block // aligned * (aligned // block)
        total = blocks * block + SPARE_BLOCKS * aligned
        return PagesPrediction(block, blocks, blocks * self.page_size, total)


@dataclass(frozen=True)
class PagedRun:
    """What transformers' paged cache did: its pool as it was made, and the answers."""

    plan: TransformersPlan
    version: str
    num_blocks: int
    total_bytes: int
    answers: dict[int, ServedAnswer]
    looks: tuple[PoolLook, ...]
    seconds: float

    @property
    def peak_used_blocks(self) -> int:
        """Most blocks that any look saw in use."""
        return max((look.used_blocks for look in self.looks), default=0)

    @property
    def token_ids(self) -> dict[int, tuple[int, ...]]:
        """What each request got."""
        return {number: answer.token_ids for number, answer in sorted(self.answers.items())}


def run_transformers_paged(
    plan: TransformersPlan, requests: Sequence[Request], *, max_seconds: float = 120.0
) -> PagedRun:
    """Serve requests, all sent at once, greedily and to their full length; return what happened.

    Arrival times are not kept. Raises `Unsupported` for an older transformers, and `EngineFailed`
    when it stops by itself, or is not done after `max_seconds`.
    """
    import transformers

    model = _load(plan)
    rows = [prompt_ids(request) for request in requests]
    started = time.perf_counter()
    looks: list[PoolLook] = []
    with _manager(plan, model) as manager:
        names = [
            manager.add_request(
                row, request_id=str(request.request_id), record_timestamps=True,
                max_new_tokens=request.output_tokens or request.max_new_tokens,
            )
            for row, request in zip(rows, requests, strict=True)
        ]  # fmt: skip
        finished: dict[str, Any] = {}
        while len(finished) < len(names):
            result = manager.get_result(timeout=0.02)
            cache = _cache_of(manager)
            now = time.perf_counter() - started
            if cache is not None:
                looks.append(PoolLook(now, cache.num_blocks - cache.pool.num_free_sectors))
            if result is not None and result.is_finished():
                finished[result.request_id] = result
            elif not manager.is_running():
                raise EngineFailed("transformers' paged cache stopped before all had an answer")
            if now > max_seconds:
                raise EngineFailed(
                    f"transformers' paged cache was not done after {max_seconds:g} s"
                )
        cache = _cache_of(manager)
        blocks, size = int(cache.num_blocks), int(cache.cache_tensor.numel())
    answers = {r.request_id: _answer(r, finished[str(r.request_id)], started) for r in requests}
    seconds = time.perf_counter() - started
    return PagedRun(plan, transformers.__version__, blocks, size, answers, tuple(looks), seconds)


def _load(plan: TransformersPlan) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    made = AutoModelForCausalLM.from_pretrained(
        model_folder(plan.model),
        dtype=getattr(torch, plan.dtype),
        attn_implementation="sdpa",
        use_safetensors=True,
        trust_remote_code=False,
        local_files_only=True,
    )
    return made.eval()


def _manager(plan: TransformersPlan, model: Any) -> Any:
    """Return the context in which transformers serves, in a thread of its own."""
    from transformers import ContinuousBatchingConfig, GenerationConfig, __version__

    try:
        pool = ContinuousBatchingConfig(
            page_size=plan.page_size,
            num_blocks=plan.num_blocks,
            max_batch_tokens=plan.max_batch_tokens,
            allow_block_sharing=plan.prefix_caching,
            auto_switch_to_flash=False,
        )
    except TypeError:
        raise Unsupported(
            f"transformers {__version__} can't be told the pages of its paged cache; 5.24 can"
        ) from None
    greedy = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0)
    return model.continuous_batching_context_manager(
        generation_config=greedy, continuous_batching_config=pool, warmup=False
    )


def _cache_of(manager: Any) -> Any:
    worker = getattr(manager, "batch_processor", None)
    return None if worker is None else worker.cache


def _answer(request: Request, result: Any, started: float) -> ServedAnswer:
    times = tuple(max(0.0, stamp - started) for stamp in result.timestamps or ())
    reason = "failed" if result.error else "length"
    return ServedAnswer(
        request.request_id, request.prompt_tokens, tuple(result.generated_tokens), reason,
        str(result.error) if result.error else None, 0.0, times,
    )  # fmt: skip

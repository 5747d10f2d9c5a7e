"""The runs of the course's engine chapter, by name: a plan, and the loads that are sent to it.

Each is played on a live engine (`play`) or read from our recordings (`replay`); the object is the
same. Sizes are small enough for two cores: half a minute to start, a minute of work.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kvlab.errors import InvalidArgument
from kvlab.serving.engines import tasks
from kvlab.serving.engines.llamacpp import LlamaCppPlan
from kvlab.serving.engines.running import Plan
from kvlab.serving.engines.vllm import VllmPlan
from kvlab.serving.request import Request

SMALL, TIGHT = 188_743_680, 94_371_840  # 4,096 and 2,048 tokens of SmolLM2 in float32
GIB = 2**30


@dataclass(frozen=True)
class Sent:
    """One load of a scenario: what makes its requests, how many are open, for how long at most."""

    make: Callable[[], list[Request]]
    at_once: int = 64
    max_seconds: float = 180.0


@dataclass(frozen=True)
class Scenario:
    """One start of an engine. `as_old_processor`: it is told that AVX-512 is not there."""

    name: str
    title: str
    plan: Plan
    loads: dict[str, Sent] = field(default_factory=dict)
    check: bool = True
    as_old_processor: bool = False


def _capacity(name: str, title: str, **settings: Any) -> Scenario:
    return Scenario(name, f"Capacity: {title}", VllmPlan(**settings))


def _prefix(block_size: int) -> Scenario:
    loads = {
        "one prompt again": Sent(tasks.one_prompt_again, at_once=1),
        "shared start": Sent(tasks.shared_start, at_once=1),
    }
    plan = VllmPlan(block_size=block_size, cache_bytes=2 * SMALL)
    return Scenario(f"prefix-{block_size}", f"Prefix hits with blocks of {block_size}", plan, loads)


def _pool(tokens: int, cache_bytes: int) -> Scenario:
    plan = VllmPlan(cache_bytes=cache_bytes, prefix_caching=False)
    loads = {"twelve": Sent(tasks.twelve_at_once)}
    return Scenario(
        f"pool-{tokens}", f"Twelve requests in a pool of {tokens:,} tokens", plan, loads
    )


def _ranks(kv_heads: int, tp: int) -> Scenario:
    plan = VllmPlan(f"random-8-kv{kv_heads}", cache_bytes=2**27, tp=tp)
    model = plan.model
    loads = {"a few": Sent(partial(tasks.one_prompt_again, model, 2), at_once=1)}
    return Scenario(f"tp{tp}-kv{kv_heads}", f"{kv_heads} KV heads on {tp} rank(s)", plan, loads)


def _quality(name: str, title: str, **settings: Any) -> Scenario:
    plan = VllmPlan(prefix_caching=False, cache_bytes=SMALL, **settings)
    loads = {"codes": Sent(tasks.code_requests, at_once=8)}
    return Scenario(f"quality-{name}", f"Fifty questions: {title}", plan, loads)


def _recall(name: str, title: str, **settings: Any) -> Scenario:
    plan = VllmPlan("tiny", prefix_caching=False, cache_bytes=2**27, **settings)
    loads = {"recall": Sent(tasks.recall_requests, at_once=32)}
    return Scenario(f"recall-{name}", f"Recall of facts: {title}", plan, loads)


def _cells(cache_type: str, context: int = 4096, slots: int = 1) -> Scenario:
    plan = LlamaCppPlan(context=context, slots=slots, cache_type=cache_type)
    loads: dict[str, Sent] = {}
    if slots == 1:
        lengths = (64, 512, 2048)
        make = partial(tasks.growing_prompts, "smollm2", lengths, 64)
        loads = {"longer and longer": Sent(make, at_once=1)}
    name = f"cells-{cache_type}" + (f"-{slots}slots" if slots > 1 else "")
    return Scenario(
        name, f"llama.cpp: {context:,} cells of {cache_type}, {slots} slot(s)", plan, loads
    )


FP8_REFUSAL = Scenario(
    "fp8-refused",
    "A cache in FP8 on a processor without AVX-512",
    VllmPlan(block_size=128, cache_bytes=GIB, max_model_len=2048, cache_dtype="fp8"),
    check=False,
    as_old_processor=True,
)
TOO_SMALL = Scenario(
    "too-small",
    "A cache too small for one request of full length",
    VllmPlan(cache_bytes=TIGHT, max_model_len=8192),
    check=False,
)
GROWTH = Scenario(
    "growth",
    "One longer and longer prompt, and the memory",
    VllmPlan(cache_bytes=4 * SMALL, max_model_len=8192, prefix_caching=False),
    {
        "longer and longer": Sent(
            partial(tasks.growing_prompts, "smollm2", (1000, 2000, 4000, 8000)),
            at_once=1,
            max_seconds=600,
        )
    },
)

ALL = (
    _capacity(
        "capacity-bf16-128", "bfloat16, blocks of 128, 1 GiB",
        dtype="bfloat16", block_size=128, cache_bytes=GIB, max_model_len=2048,
    ),
    _capacity(
        "capacity-fp32-128", "float32, blocks of 128, 1 GiB",
        block_size=128, cache_bytes=GIB, max_model_len=2048,
    ),
    _capacity("capacity-fp32-32", "float32, blocks of 32, 180 MiB", cache_bytes=SMALL),
    _capacity("capacity-fp32-32-tight", "float32, blocks of 32, 90 MiB", cache_bytes=TIGHT),
    _capacity(
        "capacity-fp8-128", "FP8, blocks of 128, 1 GiB",
        block_size=128, cache_bytes=GIB, max_model_len=2048, cache_dtype="fp8",
    ),
    _capacity("capacity-tiny", "the tiny Llama, 16 MiB", model="tiny", cache_bytes=2**24),
    _prefix(32),
    _prefix(128),
    _pool(2048, TIGHT),
    _pool(23296, GIB),
    _ranks(4, 1), _ranks(4, 2), _ranks(1, 1), _ranks(1, 2),
    FP8_REFUSAL, TOO_SMALL,
    Scenario(
        "times", "Requests that arrive one by one: first token, and each next one",
        VllmPlan(cache_bytes=2 * SMALL), {"arriving": Sent(tasks.arriving)},
    ),
    GROWTH,
    Scenario(
        "waves", "Requests come and go, the memory stays",
        VllmPlan(cache_bytes=SMALL), {"waves": Sent(tasks.waves)},
    ),
    _quality("fp32", "cache and weights in float32"),
    _quality("bf16", "cache and weights in bfloat16", dtype="bfloat16"),
    _quality("fp8", "weights in float32, cache in FP8", cache_dtype="fp8"),
    _recall("fp32", "cache in float32"),
    _recall("bf16", "cache and weights in bfloat16", dtype="bfloat16"),
    _recall("fp8", "weights in float32, cache in FP8", cache_dtype="fp8"),
    _cells("f16"), _cells("q8_0"), _cells("q4_0"),
    _cells("f16", context=8192, slots=8),
)  # fmt: skip

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in ALL}


def find_scenario(name: str) -> Scenario:
    """Return the scenario of that name; `InvalidArgument` lists them.

    >>> find_scenario("pool-2048").plan.predict().tokens
    2048
    """
    if name not in SCENARIOS:
        raise InvalidArgument("name", name, f"must be one of {', '.join(SCENARIOS)}")
    return SCENARIOS[name]

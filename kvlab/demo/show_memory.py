"""Demos of the memory formula: the bar with the class's guess, and a slider for every factor."""

from collections.abc import Mapping
from typing import Any

from kvlab.arithmetic.units import MIB, format_bytes
from kvlab.course.published_table import MODEL as TABLE_MODEL
from kvlab.course.published_table import PRINTED_MIB, STATEMENTS, size
from kvlab.demo.stages import Preset, Stage, put
from kvlab.widgets.memory_explorer import EXAMPLE, memory_explorer
from kvlab.widgets.memory_guess import EXAMPLE as BAR_EXAMPLE
from kvlab.widgets.memory_guess import MemoryGuess, memory_guess
from kvlab.widgets.memory_guess_frame import AS_MADE, AS_MANY, TABLE, deployed
from kvlab.widgets.planner_inputs import NOMINAL, TWIN

MQA = dict(BAR_EXAMPLE) | {
    "model": TWIN, "gpu": NOMINAL, "tp": 8, "context": 131_072, "users": AS_MANY,
}  # fmt: skip
"""The planner's preset of the same name, on the bar: all memory usable, no overhead."""


def _pool() -> str:
    names = ("model", "num_kv_heads", "cache_dtype", "context", "gpu", "tp")
    return f"{int(deployed(*(MQA[name] for name in names))[1].pooled)}"


def _ask_mqa(show: MemoryGuess) -> None:
    show.set(**MQA | {"guess": _pool()})


def _mqa(show: MemoryGuess) -> Mapping[str, str]:
    return {"pool": _pool()}


def _table(show: MemoryGuess) -> Mapping[str, str]:
    """What the page printed for one request, what is true, and what was made from it."""
    tokens = show.values["context"]
    fit = next(row for row in STATEMENTS if row.letter == "J")
    return {
        "printed": f"{PRINTED_MIB[tokens]:,.0f} MB",
        "true": f"{size(tokens) / MIB:,.0f} MiB",
        "factor": f"{size(tokens) / MIB / PRINTED_MIB[tokens]:g}",
        "said": fit.printed,
        "fit": fit.compute(),
        "rows": " / ".join(f"{tokens:,}" for tokens in PRINTED_MIB),
    }


def _before(show: MemoryGuess) -> Mapping[str, str]:
    """The caches of the same users in 16 bit."""
    values = show.values | {"cache_dtype": "bf16"}
    names = ("model", "num_kv_heads", "cache_dtype", "context", "gpu", "tp")
    made = deployed(*(values[name] for name in names))[0]
    return {"before": format_bytes(values["users"] * made.tightest.request_bytes)}


BAR = (
    Stage(
        "the bar",
        memory_guess,
        "context",
        (
            Preset(
                "How large is the green part?",
                put(**BAR_EXAMPLE),
                "{n[all caches]} of caches beside {n[weights]} of weights. {n[users that fit]} "
                "such users would fit.",
                asks="{v[users]} users keep {v[context]} tokens each. How many GB are their "
                "caches? Type the room's guess, then reveal.",
            ),
            Preset(
                "MQA: 92 or 11?",
                _ask_mqa,
                "{n[users that fit]} fit, not {pool}: each of {v[tp]} GPUs keeps the same KV head, "
                "so each holds a whole copy of every cache.",
                _mqa,
                asks="One KV head, {v[tp]} GPUs, {v[context]} tokens each. Counted as one pool, "
                "{pool} users fit: the ghost. How many fit on the GPU that you see?",
            ),
            Preset(
                "Published 8B table against truth",
                put(**dict(BAR_EXAMPLE) | {"model": TABLE_MODEL, "gpu": NOMINAL, "users": 1,
                                           "context": 131_072, "ghost": TABLE}),
                "It is {true}: the table is {factor} times too small in every row. For "
                "{rows} tokens its page then lets {said} users in, and {fit} fit.",
                _table,
                asks="A published table prints {printed} for one user of {v[context]} tokens: the "
                "ghost. Right, too small or too large?",
            ),
            Preset(
                "FP8: half of what?",
                put(**dict(BAR_EXAMPLE) | {"cache_dtype": "fp8", "shown": True}),
                "The caches go from {before} to {n[all caches]}. The weights stay at {n[weights]}: "
                "they have a dtype of their own.",
                _before,
            ),
            Preset(
                "tp 16 on 8 heads",
                put(**dict(BAR_EXAMPLE) | {"model": "meta-llama/Llama-3.1-70B", "tp": 16,
                                           "users": AS_MANY, "context": 131_072, "shown": True}),
                "A KV head is not split over {v[tp]} GPUs: {n[users that fit]} users fit, where "
                "one pool promised {n[counted as one pool]}.",
            ),
            Preset(
                "A latent does not split",
                put(**dict(BAR_EXAMPLE) | {"model": "deepseek-ai/DeepSeek-V2-Lite", "tp": 8,
                                           "num_kv_heads": AS_MADE, "users": AS_MANY,
                                           "context": 131_072, "shown": True}),
                "The latent serves all heads, so each of {v[tp]} GPUs keeps it whole: "
                "{n[users that fit]} users, the pool promised {n[counted as one pool]}.",
            ),
        ),
    ),
)  # fmt: skip


def _start(**values: Any) -> Any:
    """Return what puts the explorer back to its example, then changes some controls."""

    def go(show: Any) -> None:
        show.reset()
        if values:
            show.set(**values)

    return go


FORMULA = (
    Stage(
        "every factor",
        memory_explorer,
        "context",
        (
            Preset(
                "The example",
                _start(),
                f"{EXAMPLE.rsplit('/', 1)[-1].split('-')[0]}: {{n[one token]}} a token, "
                "{n[one user]} a user. Which of the sliders are not in the formula?",
            ),
            Preset(
                "Count query heads",
                _start(num_kv_heads=32),
                "With a KV head for each of its {v[num_kv_heads]} query heads a token would take "
                "{n[one token]}, and {n[users that fit]} users would fit.",
            ),
            Preset(
                "Weights in INT4",
                _start(weights_dtype="int4"),
                "The weights shrink to {n[weights]}. A user still takes {n[one user]}: the "
                "cache has a dtype of its own.",
            ),
            Preset(
                "Longer texts",
                _start(context=131_072, users=1),
                "One user of {v[context]} tokens takes {n[one user]}; the weights are "
                "{n[weights]}. {n[users that fit]} such users fit.",
            ),
        ),
    ),
)

"""What the planner offers to choose from, and from a choice to a plan. No pictures here."""

from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import ipywidgets as widgets

from kvlab.arithmetic.catalogue import find_model, load_models
from kvlab.arithmetic.gpus import load_gpus
from kvlab.arithmetic.plan_deployment import ModelSource
from kvlab.arithmetic.plan_inputs import PlanInputs, plan_inputs
from kvlab.arithmetic.plan_report import plan_report
from kvlab.arithmetic.sizing import Plan, make_plan, plan
from kvlab.arithmetic.units import GB
from kvlab.errors import KvlabError
from kvlab.widgets.controls import dropdown, powers, slider

TWIN = "Llama-3.1-70B with one KV head"
NOMINAL = "80 GB, as on the box"
NOMINAL_BYTES = 80 * GB
REST = 0
"""The choice of dp that takes as many replicas as the GPUs allow."""

EXAMPLE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B",
    "gpu": "H100 SXM5",
    "gpus": 8,
    "tp": 8,
    "pp": 1,
    "dp": REST,
    "weights_dtype": "bf16",
    "cache_dtype": "bf16",
    "context": 131_072,
    "output": 0,
    "users": 0,
    "utilization": 90,
    "overhead": 3,
    "ttft": 0,
    "tpot": 0,
}
"""Llama 3.1 70B on eight H100: what the planner starts with."""

PRESETS: dict[str, dict[str, Any]] = {
    "Llama 70B on 8 cards": EXAMPLE,
    "MQA: 92 or 11?": EXAMPLE | {"model": TWIN, "gpu": NOMINAL, "utilization": 100, "overhead": 0},
    "two cards for DeepSeek-V3": EXAMPLE
    | {"model": "deepseek-ai/DeepSeek-V3", "gpu": NOMINAL, "gpus": 2, "tp": 2,
       "weights_dtype": "fp8"},
}  # fmt: skip
"""One click, one point made."""


@cache
def model_choices() -> tuple[tuple[str, str], ...]:
    """Return the models whose weights are known, as (short name, id), and a twin with one head."""
    found = [(TWIN, TWIN)]
    for row in load_models():
        try:
            plan(row.id, gpu_bytes=NOMINAL_BYTES, context=1)
        except KvlabError:
            continue
        found.append((row.id.rsplit("/", 1)[-1], row.id))
    return tuple(sorted(found, key=lambda pair: pair[0].lower()))


def model_source(name: str) -> ModelSource:
    """Return what `plan` takes for a choice: a name, or the config of the twin."""
    if name != TWIN:
        return name
    return {**find_model("llama-3.1-70b").config, "num_key_value_heads": 1, "_name_or_path": TWIN}


def planner_controls(values: dict[str, Any]) -> dict[str, widgets.Widget]:
    """Return the controls by name, at these values."""
    counts = [1, 2, 4, 8, 16, 32, 64, 128]
    rest = [("as many as fit", REST), *((str(n), n) for n in (1, 2, 4, 8, 16))]
    outputs = [("0", 0), *((f"{2**n:,}", 2**n) for n in range(8, 16))]
    people = [("as many as fit", 0), *((f"{2**n:,}", 2**n) for n in range(11))]
    waits = [("none", 0), *((f"{s} s", s) for s in (1, 2, 5, 10, 30, 60))]
    steps = [("none", 0), *((f"{ms} ms", ms) for ms in (10, 15, 20, 22, 25, 30, 50, 100))]
    gpus = [NOMINAL, *(gpu.name for gpu in load_gpus())]
    return {
        "model": dropdown("model", model_choices(), values["model"]),
        "gpu": dropdown("GPU", gpus, values["gpu"]),
        "gpus": dropdown("GPUs in all", counts, values["gpus"]),
        "tp": dropdown("tensor parallel tp", counts[:6], values["tp"]),
        "pp": dropdown("pipeline stages pp", [1, 2, 3, 4, 6, 8], values["pp"]),
        "dp": dropdown("replicas dp", rest, values["dp"]),
        "weights_dtype": dropdown("weights", ["bf16", "fp8", "int4"], values["weights_dtype"]),
        "cache_dtype": dropdown("cache", ["bf16", "fp8", "int4"], values["cache_dtype"]),
        "context": powers("context", values["context"], 1024, 2**20, width="300px"),
        "output": dropdown("output reserved", outputs, values["output"]),
        "users": dropdown("users at once", people, values["users"]),
        "utilization": _wide(slider("usable, %", values["utilization"], 50, 100)),
        "overhead": _wide(slider("overhead, GB", values["overhead"], 0, 20)),
        "ttft": dropdown("first token within", waits, values["ttft"]),
        "tpot": dropdown("each token within", steps, values["tpot"]),
    }


def _wide(control: widgets.Widget) -> widgets.Widget:
    control.layout.width = "300px"
    return control


@lru_cache(maxsize=256)
def planned(**chosen: Any) -> tuple[Plan, dict[str, Any]]:
    """Return the plan of a choice and its report; a choice made before costs nothing.

    >>> planned(**PRESETS["MQA: 92 or 11?"])[1]["admission_bound"]
    11
    """
    layout = ("model", "gpu", "gpus", "tp", "pp", "dp", "weights_dtype", "cache_dtype")
    start = _laid_out(**{name: chosen[name] for name in layout})
    made = make_plan(
        start.change(
            context=chosen["context"],
            output=chosen["output"],
            users=chosen["users"] or None,
            utilization=Fraction(chosen["utilization"], 100),
            overhead_bytes=chosen["overhead"] * GB,
            ttft_target=chosen["ttft"] or None,
            tpot_target=chosen["tpot"] / 1000 if chosen["tpot"] else None,
        )
    )
    return made, plan_report(made)


@lru_cache(maxsize=64)
def _laid_out(*, model: str, gpu: str, dp: int, **layout: Any) -> PlanInputs:
    """The model laid out on its GPUs: kept, so that a slider does not read the config again."""
    on_box = gpu == NOMINAL
    memory = {"gpu": "H100", "gpu_bytes": NOMINAL_BYTES} if on_box else {"gpu": gpu}
    return plan_inputs(model_source(model), context=1, dp=dp or None, **memory, **layout)

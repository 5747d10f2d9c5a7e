"""Chapter 03's memory bar: the factors of real models as data; the sums are done in the page.

`assets/memory-sums.js` does them with whole numbers; a test compares it with the planner.
"""

import json
from collections.abc import Mapping
from typing import Any

from kvlab.arithmetic.catalogue import load_models
from kvlab.arithmetic.dtypes import CACHE_DTYPES
from kvlab.arithmetic.gpus import load_gpus
from kvlab.arithmetic.plan_dense import COMPUTED, read_weights
from kvlab.arithmetic.plan_weights import Weights
from kvlab.errors import KvlabError
from kvlab.figures import palette
from kvlab.widgets.memory_model import preset
from tools.site.cells import STILL, Part
from tools.site.markup import tag, text

DTYPES = ("fp32", "bf16", "fp8", "int8", "int4", "q8_0", "q4_0")
RANKS = (1, 2, 4, 8, 16)
NOMINAL = ("80 GB, nominal", 80 * 10**9)
EXAMPLE = {
    "model": "Llama-3.1-8B", "kvHeads": 8, "dtype": "bf16", "context": 8192, "users": 24,
    "gpu": "H100 SXM5", "tp": 1, "overhead": 2.0,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "back to the example": EXAMPLE,
    "MQA on eight ranks": EXAMPLE
    | {"model": "Llama-3.1-70B", "kvHeads": 1, "context": 131_072, "users": 11,
       "gpu": NOMINAL[0], "tp": 8, "overhead": 0.0},
    "the same with 8 KV heads": EXAMPLE
    | {"model": "Llama-3.1-70B", "context": 131_072, "users": 11, "gpu": NOMINAL[0], "tp": 8,
       "overhead": 0.0},
    "8B, full context": EXAMPLE | {"context": 131_072, "users": 8},
}  # fmt: skip


def memory_models() -> list[dict[str, Any]]:
    """Return the models whose layers are all alike and whose weights follow from their config."""
    found = []
    for row in load_models():
        weights = _exact_weights(row.config)
        heads = row.config.get("num_attention_heads")
        if weights and isinstance(heads, int) and (factors := preset(row.id).factors):
            found.append(
                {
                    "name": row.id.rsplit("/", 1)[-1],
                    "layers": factors["num_layers"],
                    "heads": heads,
                    "kvHeads": factors["num_kv_heads"],
                    "headDim": factors["head_dim"],
                    **weight_data(weights),
                }
            )
    return sorted(found, key=lambda model: str(model["name"]).casefold())


def _exact_weights(config: Mapping[str, Any]) -> Weights | None:
    """Return weights that are computed, and that another number of KV heads changes in one place.

    A family whose norms run over all keys has a second place; it stays out.
    """
    try:
        weights = read_weights(config)
        twin = read_weights({**config, "num_key_value_heads": 1})
    except KvlabError:
        return None
    alike = weight_data(weights) == weight_data(twin)
    return weights if weights.source == COMPUTED and alike else None


def weight_data(weights: Weights) -> dict[str, int]:
    """Return the parameters of a model by how ranks share them."""
    return {
        "split": weights.split,
        "perKvHead": weights.per_kv_head,
        "tables": weights.embedding + weights.head,
        "copied": weights.copied + weights.final_norm,
    }


def memory_data() -> dict[str, Any]:
    """Return all that the bar needs: models, element types, cards, presets and colours."""
    cards = {gpu.name: gpu.driver_bytes for gpu in load_gpus()}
    return {
        "models": memory_models(),
        "dtypes": {name: [CACHE_DTYPES[name].block, CACHE_DTYPES[name].block_bytes]
                   for name in DTYPES},
        "gpus": dict([NOMINAL]) | cards,
        "ranks": RANKS,
        "presets": PRESETS,
        "colours": {role: [palette.color_of(role), palette.text_on(palette.color_of(role))]
                    for role in ("weights", "value")},
    }  # fmt: skip


def memory_part() -> tuple[Part, dict[str, str]]:
    """Return the bar with its controls; without scripts the stored picture is shown."""
    names = [model["name"] for model in memory_data()["models"]]
    rows = [
        _select("model", "model", names, EXAMPLE["model"]),
        _range("kvHeads", "KV heads"),
        _select("dtype", "cache dtype", DTYPES, EXAMPLE["dtype"]),
        _range("context", "tokens each"),
        _range("users", "users"),
        _select("gpu", "card", [*memory_data()["gpus"]], EXAMPLE["gpu"]),
        _select("tp", "ranks (tp)", RANKS, EXAMPLE["tp"]),
        _range("overhead", "overhead, GB a card"),
        _guess(),
    ]
    presets = "".join(
        tag("button", text(name), type="button", class_="js-preset", data_preset=name)
        for name in PRESETS
    )
    body = tag("div", "".join(rows), class_="factors js")
    body += tag("p", presets, class_="presets js")
    body += tag("div", STILL, class_="pic wide stage", style="--w:960px")
    body += tag("p", "", class_="event", role="status")
    body += tag("dl", "", class_="numbers js")
    html = tag("div", body, class_="memory", role="group", aria_label="Where the memory goes")
    held = json.dumps(memory_data(), ensure_ascii=False, separators=(",", ":"))
    return Part(html, {"memory"}, ("memory-data.js",)), {
        "memory-data.js": f"kvlab.memoryData={held};\n"
    }


def _row(name: str, words: str, control: str) -> str:
    label = tag("label", text(words), for_=f"memory-{name}")
    return tag("div", label + control + tag("output", "", for_=f"memory-{name}"), class_="factor")


def _range(name: str, words: str) -> str:
    return _row(name, words, tag("input", type="range", id=f"memory-{name}", data_name=name))


def _select(name: str, words: str, options: Any, chosen: object) -> str:
    inner = "".join(
        tag("option", text(str(o)), value=str(o), selected=o == chosen) for o in options
    )
    return _row(name, words, tag("select", inner, id=f"memory-{name}", data_name=name))


def _guess() -> str:
    entry = tag("input", type="text", id="memory-guess", data_name="guess", autocomplete="off",
                placeholder="such as 20 GB")  # fmt: skip
    return _row("guess", "all caches, a guess", entry)

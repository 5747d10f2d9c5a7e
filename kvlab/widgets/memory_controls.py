"""The controls of the memory explorer: one for every factor, and the machine around it."""

import ipywidgets as widgets

from kvlab.arithmetic.dtypes import CACHE_DTYPES
from kvlab.arithmetic.gpus import load_gpus
from kvlab.widgets import memory_model
from kvlab.widgets.controls import dropdown, powers, slider

HEAD_DIMS = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512)
KV_HEADS = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 25, 32, 36),
    *(40, 48, 56, 64, 71, 72, 96, 112, 128),
)
EXAMPLE = "meta-llama/Llama-3.1-8B"
"""The model that the explorer starts with."""

_WIDTH = "310px"


def _steps(name: str, value: int, options: tuple[int, ...]) -> widgets.SelectionSlider:
    """Return a slider over the values that real models have."""
    pairs = [(f"{option:,}", option) for option in options]
    return widgets.SelectionSlider(options=pairs, value=value, description=name)


def _number(name: str, value: float, high: float) -> widgets.BoundedFloatText:
    return widgets.BoundedFloatText(value=value, min=0, max=high, step=0.5, description=name)


def memory_controls() -> dict[str, widgets.Widget]:
    """Return the controls of the memory explorer by name, at the example."""
    dtypes = tuple(CACHE_DTYPES)
    cards = [(f"{gpu.name} ({gpu.marketed_bytes / 1e9:g} GB)", gpu.name) for gpu in load_gpus()]
    users = slider("users", 24, 1, 256)
    layers = slider("layers", 32, 1, 160)
    guess = widgets.Text(
        description="cache, a guess",
        placeholder="such as 20 GB",
        continuous_update=False,
    )
    config = widgets.Textarea(
        description="config.json",
        placeholder="paste the content of a model's config.json here",
        continuous_update=False,
        style={"description_width": "112px"},
        layout=widgets.Layout(width="626px", height="58px"),
    )
    made: dict[str, widgets.Widget] = {
        "model": dropdown("model", memory_model.choices(), EXAMPLE),
        "num_layers": layers,
        "num_kv_heads": _steps("KV heads", 8, KV_HEADS),
        "head_dim": _steps("head_dim", 128, HEAD_DIMS),
        "cache_dtype": dropdown("cache dtype", dtypes, "bf16"),
        "context": powers("tokens each", 8192, 128, 2**20),
        "users": users,
        "gpu": dropdown("GPU", cards, "H100 SXM5"),
        "gpus": powers("GPUs, pooled", 1, 1, 16),
        "parameters": _number("weights, 10^9", 8.03, 2000),
        "weights_dtype": dropdown("weights dtype", dtypes[:6], "bf16"),
        "overhead": _number("overhead, GB", 2.0, 500),
        "guess": guess,
        "config": config,
    }
    for name, control in made.items():
        if name != "config":
            control.layout = widgets.Layout(width=_WIDTH)
            control.style.description_width = "112px"
    return made

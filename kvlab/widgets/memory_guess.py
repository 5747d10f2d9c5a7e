"""The memory bar for a room: the class's guess first, as a ghost on the bar, then what is computed.

Model x context x users x KV heads x dtype x tp against one GPU. Weights and caches alone are
counted. The sizes are the planner's (`kvlab.arithmetic.sizing`), those of its tightest rank.
"""

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets

from kvlab.arithmetic.gpus import load_gpus
from kvlab.errors import InvalidArgument
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import button, dropdown, powers
from kvlab.widgets.follows_model import FollowsModel
from kvlab.widgets.memory_guess_frame import (
    AS_MADE,
    AS_MANY,
    GHOSTS,
    GUESS,
    deployed,
    guess_frame,
    head_choices,
)
from kvlab.widgets.planner_inputs import NOMINAL, model_choices

EXAMPLE: Mapping[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "num_kv_heads": AS_MADE,
    "cache_dtype": "bf16",
    "context": 8192,
    "users": 32,
    "gpu": "H100 SXM5",
    "tp": 1,
    "ghost": GUESS,
    "guess": "",
    "shown": False,
}
"""Llama 3.1 8B with 32 users of 8,192 tokens on one H100: what the bar starts with."""

_USERS = [("as many as fit", AS_MANY), *((f"{2**n:,}", 2**n) for n in range(11))]


class MemoryGuess(FollowsModel):
    """The bar; controls are the names of `EXAMPLE`. `reveal()` shows or hides what is computed."""

    def __init__(self, *, scale: float = 1.0) -> None:
        self._shown_model = EXAMPLE["model"]

        def draw(**values: Any) -> Frame:
            return guess_frame(deployed(**_layout(values)), values, scale=scale)

        self.buttons = {
            "reveal": button("reveal", self.reveal, hint="show or hide what is computed"),
            "example": button("back to the example", self.reset),
        }
        extras = list(self.buttons.values())
        super().__init__(_controls(), draw, kind="memory-guess", extras=extras)

    def heads_of(self, model: str) -> tuple[list[Any], object]:
        """Return the choices of KV heads, the model's own first."""
        return head_choices(model), AS_MADE

    def reveal(self) -> None:
        """Show what is computed beside the guess, or hide it again."""
        self.controls["shown"].value = not self.controls["shown"].value

    def redraw(self) -> None:
        """Draw the present values, and say what the button does now."""
        shown = self.controls["shown"].value
        self.buttons["reveal"].description = "hide" if shown else "reveal"
        super().redraw()


def _layout(values: Mapping[str, Any]) -> dict[str, Any]:
    names = ("model", "num_kv_heads", "cache_dtype", "context", "gpu", "tp")
    return {name: values[name] for name in names}


def _controls() -> dict[str, widgets.Widget]:
    cards = [NOMINAL, *(gpu.name for gpu in load_gpus())]
    guess = widgets.Text(
        description="the class's guess",
        placeholder="such as 40 users, or 20 GB",
        continuous_update=False,
    )
    shown = widgets.Checkbox(value=EXAMPLE["shown"], description="show what is computed")
    return {
        "model": dropdown("model", model_choices(), EXAMPLE["model"]),
        "num_kv_heads": dropdown("KV heads", head_choices(EXAMPLE["model"]), AS_MADE),
        "cache_dtype": dropdown("cache dtype", ["bf16", "fp8", "int4"], EXAMPLE["cache_dtype"]),
        "context": powers("tokens each", EXAMPLE["context"], 1024, 2**20),
        "users": dropdown("users", _USERS, EXAMPLE["users"]),
        "gpu": dropdown("GPU", cards, EXAMPLE["gpu"]),
        "tp": dropdown("GPUs that share it, tp", [1, 2, 4, 8, 16], EXAMPLE["tp"]),
        "ghost": dropdown("ghost on the bar", GHOSTS, EXAMPLE["ghost"]),
        "guess": guess,
        "shown": shown,
    }


def memory_guess(*, scale: float = 1.0, **values: Any) -> MemoryGuess:
    """Return the bar; `values` change single controls.

    >>> show = memory_guess()
    >>> show.controls["guess"].value = "10 GB"
    >>> show.reveal()
    >>> show.numbers["all caches"]
    '32.00 GiB (34.36 GB)'
    """
    if unknown := set(values) - set(EXAMPLE):
        rule = f"must be one of {', '.join(EXAMPLE)}"
        raise InvalidArgument("control", sorted(unknown)[0], rule)
    show = MemoryGuess(scale=scale)
    if values:
        show.set(**values)
        show.example = show.values
    return show

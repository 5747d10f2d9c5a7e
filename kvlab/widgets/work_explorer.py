"""The work of one answer, with and without a cache: sliders for P and N, a choice of model."""

from functools import cache

import ipywidgets as widgets

from kvlab.arithmetic.catalogue import load_models, model_shape
from kvlab.arithmetic.flop_steps import attention_overtakes_at
from kvlab.arithmetic.flops import (
    flops_cached,
    flops_uncached,
    token_forwards_cached,
    token_forwards_uncached,
)
from kvlab.arithmetic.units import format_flops
from kvlab.errors import KvlabError
from kvlab.figures.curves import Axis, Mark, Series, curve_chart
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown, powers

MAX_TOKENS = 2**17
"""The end of both sliders, in tokens."""


@cache
def model_choices() -> tuple[tuple[str, str], ...]:
    """Return the models of the catalogue whose work can be counted, as (short name, id)."""
    found = []
    for row in load_models():
        try:
            model_shape(row.id)
        except KvlabError:
            continue
        found.append((row.id.rsplit("/", 1)[-1], row.id))
    return tuple(found)


@cache
def curves(model: str, prompt_tokens: int) -> tuple[Series, Series]:
    """Return FLOPs against new tokens, uncached and cached, for a prompt of this many tokens."""
    shape = model_shape(model)
    tokens = [2**power for power in range(MAX_TOKENS.bit_length())]
    uncached = [flops_uncached(shape, prompt_tokens, n).total for n in tokens]
    cached = [flops_cached(shape, prompt_tokens, n).total for n in tokens]
    return (
        Series("uncached", tokens, uncached, "wasted", "dashed"),
        Series("cached", tokens, cached, "value"),
    )


def work_frame(model: str, prompt_tokens: int, new_tokens: int, *, scale: float = 1.0) -> Frame:
    """Return totals, ratio and curves for one model, P and N.

    >>> work_frame("llama-3.1-70b", 2000, 1000).readout["FLOP ratio"]
    '825.7x'
    """
    shape = model_shape(model)
    run = shape, prompt_tokens, new_tokens
    cached, uncached = flops_cached(*run), flops_uncached(*run)
    overtakes = attention_overtakes_at(shape)
    numbers = {
        "token-forwards, cached": f"{token_forwards_cached(prompt_tokens, new_tokens):,}",
        "token-forwards, uncached": f"{token_forwards_uncached(prompt_tokens, new_tokens):,}",
        "work, cached": format_flops(cached.total),
        "work, uncached": format_flops(uncached.total),
        "FLOP ratio": f"{uncached.total / cached.total:,.1f}x",
        "attention overtakes at position": f"{overtakes:,}",
    }
    event = f"{shape.name}: P = {prompt_tokens:,}, N = {new_tokens:,}."
    picture = _picture(model, prompt_tokens, new_tokens, overtakes, scale)
    return Frame(picture, numbers, event)


def _picture(model: str, prompt: int, new: int, overtakes: int, scale: float) -> Picture:
    marks = [Mark(f"N = {new:,}", new)]
    if overtakes > prompt:
        marks.append(Mark("attention passes the rest", overtakes - prompt))
    return curve_chart(
        curves(model, prompt),
        x=Axis("new tokens N", log=True, base=2),
        y=Axis("work of the whole answer", log=True, unit="FLOP"),
        marks=marks,
        title="The work of one answer",
        reading="Both axes are logarithmic: equal distances are equal factors.",
        width=620,
        height=250,
        scale=scale,
    )


def work_explorer(
    model: str = "meta-llama/Llama-3.1-70B",
    *,
    prompt_tokens: int = 2048,
    new_tokens: int = 1024,
    scale: float = 1.0,
) -> Explorer:
    """Return the explorer; controls are `model`, `prompt_tokens` and `new_tokens`.

    >>> show = work_explorer()
    >>> show.controls["new_tokens"].value = 1
    >>> show.numbers["FLOP ratio"]
    '1.0x'
    """
    width = "300px"
    controls: dict[str, widgets.Widget] = {
        "model": dropdown("model", model_choices(), model),
        "prompt_tokens": powers("prompt P", prompt_tokens, 1, MAX_TOKENS, width=width),
        "new_tokens": powers("new N", new_tokens, 1, MAX_TOKENS, width=width),
    }

    def draw(**values: object) -> Frame:
        return work_frame(**values, scale=scale)  # type: ignore[arg-type]

    home = button("back to the example", lambda: show.reset())
    show = Explorer(controls, draw, kind="work-explorer", extras=[home], beside=True)
    return show

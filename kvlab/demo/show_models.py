"""Demos that run a model: the cache in fewer bits, and what eviction forgets."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from kvlab.demo.stages import Preset, Stage, put
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown

if TYPE_CHECKING:
    from kvlab.model.eviction_runs import EvictionRun
    from kvlab.model.quality import Bench

TEXTS, ATTENDED = 4, 256
"""Texts that eviction is measured on, and tokens over which attention is watched."""


def bits() -> Explorer:
    """Return the explorer of fewer bits, on real keys and values of `tiny`."""
    from kvlab.widgets.bits_explorer import bits_explorer

    return bits_explorer()


@lru_cache(maxsize=1)
def _bench() -> "Bench":
    from kvlab.model.load import load_model
    from kvlab.model.quality import Bench

    return Bench(load_model("tiny", device="cpu", dtype="float32"), num_sequences=TEXTS)


@lru_cache(maxsize=64)
def _run(policy: str, percent: int) -> "EvictionRun":
    """Measure one policy at one budget, when it is first looked at: half a second."""
    from kvlab.model.eviction_runs import eviction_runs

    (found,) = eviction_runs(_bench(), [policy], [percent])
    return found


def survivors() -> Explorer:
    """Return the map of what survives in `tiny`; each policy is measured when it is chosen."""
    from kvlab.model.eviction_runs import PERCENTS, POLICIES
    from kvlab.widgets.eviction_explorer import NAMES, eviction_frame

    percent = widgets.SelectionSlider(
        options=[(f"{share} %", share) for share in PERCENTS], value=25, description="budget"
    )
    controls: dict[str, Any] = {
        "policy": dropdown("policy", [(NAMES[name], name) for name in POLICIES], "window"),
        "percent": percent,
    }

    def draw(policy: str, percent: int) -> Frame:
        return eviction_frame(_run(policy, percent), TEXTS)

    home = button("back to the example", lambda: show.reset())
    show = Explorer(controls, draw, kind="eviction-explorer", extras=[home])
    return show


def attention() -> Explorer:
    """Return how unevenly attention falls in SmolLM2, or in `tiny` where that is not here."""
    from kvlab.model.attention_share import attention_share
    from kvlab.model.load import load_model
    from kvlab.model.quality_task import make_task
    from kvlab.model.weights import is_available
    from kvlab.widgets.share_explorer import share_explorer

    loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
    text = make_task(loaded, num_sequences=1).input_ids[:, :ATTENDED]
    return share_explorer(attention_share(loaded.model, text), name=loaded.name)


_BITS = {"group": 32, "residual": 0, "context": 4096}
BITS = (
    Stage(
        "keys and values of tiny",
        bits,
        "residual",
        (
            Preset(
                "INT4, one scale for all",
                put(format="int4", granularity="tensor", **_BITS),
                "{n[bits a number, scales included]} bits a number, and keys are off by "
                "{n[error of keys]}. Which setting brings that down?",
            ),
            Preset(
                "INT4, a scale a group",
                put(format="int4", granularity="group", **_BITS),
                "Scales cost bits: {n[bits a number, scales included]} a number, so it is "
                "{n[times smaller]} smaller. Keys are off by {n[error of keys]}.",
            ),
            Preset(
                "INT4, keys by channel",
                put(format="int4", granularity="channel", **_BITS),
                "At {n[bits a number, scales included]} bits a number the keys are off by "
                "{n[error of keys]}, the values by {n[error of values]}: they want different "
                "scales.",
            ),
            Preset(
                "FP8",
                put(format="fp8", granularity="tensor", **_BITS),
                "{n[times smaller]} smaller, keys off by {n[error of keys]}. Who would notice?",
            ),
        ),
    ),
)
EVICTION = (
    Stage(
        "who survives",
        survivors,
        "percent",
        (
            Preset(
                "The window",
                put(policy="window", percent=25),
                "The newest {n[budget]} are kept: {n[recall, this text]} facts of this text are "
                "answered. Will random do better?",
            ),
            Preset(
                "Random",
                put(policy="random", percent=25),
                "The same budget, kept at random: {n[recall, this text]} facts are answered, for "
                "facts stand anywhere and each head keeps others.",
            ),
            Preset(
                "Heavy hitters",
                put(policy="h2o", percent=12),
                "At {v[percent]} attention so far answers {n[recall, this text]}. Where do the "
                "lost facts stand, and why there?",
            ),
            Preset(
                "Key norm",
                put(policy="keynorm", percent=25),
                "The shortest keys are kept, and {n[recall, this text]} facts are answered: in "
                "this model facts have long keys.",
            ),
        ),
    ),
    Stage(
        "where attention falls",
        attention,
        "which",
        (
            Preset(
                "The first token",
                put(which="the first token alone"),
                "The first token alone ({n[positions counted]}) gets {n[mean]} of all attention: "
                "from {n[least of all heads]} to {n[most of all heads]} by head. Is it so "
                "important a word?",
            ),
            Preset(
                "The top positions",
                put(which=5),
                "Of the attention, {v[which]} of positions hold {n[mean]}. Can the others go?",
            ),
        ),
    ),
)

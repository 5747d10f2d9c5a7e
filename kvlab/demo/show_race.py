"""The demo `race`: recompute against cache, first on the toy, then on a live Llama."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.units import format_bytes
from kvlab.demo.stages import Preset, Stage, put
from kvlab.errors import ModelUnavailable
from kvlab.widgets.race import Race
from kvlab.widgets.toy_race import ToyRace, race_beats, toy_race

PROMPTS = {
    "smollm2": "The water cycle has four steps. First, the sun warms the sea and water evaporates. "
    "Second,",
    "tiny": "Ada: Paris. Bruno: Oslo. Carmen: Lima. A quiet morning by the sea. Where Bruno?",
}
NEW_TOKENS = {"smollm2": 48, "tiny": 200}
"""Tokens to write: so many that a room sees the left column fall behind."""


class LiveRace(Race):
    """A race of one model with itself, without a cache and with one; it knows what to expect."""

    def __init__(self, name: str) -> None:
        from kvlab.model.decode import generate
        from kvlab.model.load import load_model
        from kvlab.model.weights import is_available

        if not is_available(name):
            raise ModelUnavailable(f"{name} is not here: run `kvlab fetch {name}`, or race on tiny")
        loaded, self.new_tokens = load_model(name, dtype="float32"), NEW_TOKENS[name]
        ids = loaded.encode(PROMPTS[name])
        self.prompt_tokens, self.config = ids.shape[1], loaded.model.config
        write = partial(generate, loaded.model, ids, max_new_tokens=self.new_tokens)
        lanes = {
            "recompute everything": partial(write, cache="none"),
            "keep keys and values": partial(write, cache="growing"),
        }
        super().__init__(
            lanes,
            decode=loaded.decode,
            max_new_tokens=self.new_tokens,
            prompt=PROMPTS[name],
            title=f"{loaded.name}, live, on this machine's {loaded.device.type.upper()}",
        )

    def expected(self) -> dict[str, str]:
        """Return the work of both columns and the bytes at the end, computed before it runs."""
        sizes = self.prompt_tokens, self.new_tokens
        config = self.config
        held = kv_bytes(
            num_layers=config.num_layers,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            bytes_per_element=4,
            seq_len=self.prompt_tokens + self.new_tokens - 1,
        )
        return {
            "P": f"{self.prompt_tokens:,}",
            "N": f"{self.new_tokens:,}",
            "without": f"{token_forwards_uncached(*sizes):,}",
            "cached": f"{token_forwards_cached(*sizes):,}",
            "held": format_bytes(held),
        }


def _first_done(show: ToyRace) -> int:
    return len(race_beats(show.values["prompt"])[1])


def _to(beat: str) -> Any:
    """Return what puts the toy's race at its start, where remember is done, or at its end."""

    def go(show: ToyRace) -> None:
        ends = {"start": 0, "first": _first_done(show), "end": show.controls["step"].max}
        show.go(ends[beat])

    return go


def _live(show: LiveRace) -> Mapping[str, str]:
    return show.expected()


TOY = (
    Preset(
        "Who is done first?",
        put(prompt="AB", step=0),
        "The prompt is {v[prompt]}, and both columns run one token a beat. Which is done first, "
        "and what will the other one have written by then?",
    ),
    Preset(
        "Remember is done",
        _to("first"),
        "After {v[step]} beats remember has written {n[remember: written]}, recompute "
        "{n[recompute: written]}: {n[recompute: of them again]} of its beats ran a token again.",
    ),
    Preset(
        "To the end",
        _to("end"),
        "The same letters for {n[recompute: token-forwards]} token-forwards, or for "
        "{n[remember: token-forwards]} and {n[remember: rows in the cache]} rows of memory.",
    ),
)
SAID = (
    "{P} tokens are read, {N} written. The left column runs {without} tokens through the model, "
    "the right one {cached}, and holds {held} at the end. Will the texts be the same?"
)
RACE = (
    Stage("the toy", toy_race, "step", TOY),
    Stage(
        "live: tiny",
        partial(LiveRace, "tiny"),
        presets=(Preset("Live: tiny", Race.start, SAID, _live),),
    ),
    Stage(
        "live: SmolLM2",
        partial(LiveRace, "smollm2"),
        presets=(Preset("Live: SmolLM2", Race.start, SAID, _live),),
    ),
)

"""Sliders for every factor of the memory formula, and one bar that shows where the memory goes.

A preset or a pasted `config.json` puts the sliders where that model has them; moving one of them
makes the model your own. Models whose layers differ can't be put on sliders and say so.
"""

from collections.abc import Mapping
from typing import Any

from kvlab.errors import KvlabError
from kvlab.figures.cards import feedback
from kvlab.widgets import memory_model
from kvlab.widgets.base import Explorer, Frame, one_line
from kvlab.widgets.controls import button
from kvlab.widgets.memory_controls import EXAMPLE, HEAD_DIMS, KV_HEADS, memory_controls
from kvlab.widgets.memory_frame import memory_frame
from kvlab.widgets.memory_model import OWN, PASTED, SLIDERS, ShownModel

NO_WEIGHTS = (
    "The weights of this config can't be counted, so none are shown. Type their number, in 10^9, "
    "before you read how many users fit."
)


class MemoryExplorer(Explorer):
    """The explorer; a choice of model moves the sliders, and a moved slider frees the model.

    A config that can't be read leaves the picture as it was and says why in one line.
    """

    def __init__(self, *, scale: float = 1.0) -> None:
        self.scale, self.note = scale, ""
        self.shown = memory_model.preset(EXAMPLE)
        home = button("back to the example", self.reset)
        super().__init__(memory_controls(), self._draw, kind="memory-explorer", extras=[home])
        self._enable_sliders()

    def set(self, **values: object) -> None:
        """Set several controls and redraw once; a model or a config moves the sliders first."""
        for name in ("config", "model"):
            if name in values and name in self.controls:
                self.controls[name].value = values.pop(name)
        if set(values) & set(SLIDERS):
            self._set_quietly({"model": OWN})
            self._enable_sliders()
        if values:
            super().set(**values)

    def reset(self) -> None:
        """Go back to the example."""
        self.shown = memory_model.preset(EXAMPLE)
        Explorer.set(self, **self.example)
        self._enable_sliders()

    def _on_change(self, change: Mapping[str, Any]) -> None:
        if self._held:
            return
        owner = change.get("owner")
        names = [name for name, control in self.controls.items() if control is owner]
        self.note = ""
        try:
            self._follow(names[0] if names else "")
        except KvlabError as error:  # a learner's paste, not a fault of ours
            self.error.value = feedback("error", one_line(error))
        except Exception as error:
            self.show_error(error)
        else:
            self.redraw()
            if self.note and not self.error.value:
                self.error.value = feedback("error", self.note)

    def _follow(self, name: str) -> None:
        """Bring model and sliders together after the control `name` moved."""
        if name in SLIDERS:
            self._set_quietly({"model": OWN})
        elif name == "config" and self.controls["config"].value.strip():
            self._take(memory_model.pasted(self.controls["config"].value), PASTED)
        elif name == "model":
            chosen = self.controls["model"].value
            if chosen == PASTED:
                self._take(memory_model.pasted(self.controls["config"].value), PASTED)
            elif chosen != OWN:
                self._take(memory_model.preset(chosen), chosen)
        self._enable_sliders()

    def _take(self, shown: ShownModel, name: str) -> None:
        """Show a model: its factors on the sliders where they fit, its parameters as weights."""
        self.shown = shown
        wanted: dict[str, object] = {"model": name}
        wanted["parameters"] = (shown.parameters or 0) / 1e9  # never those of the model before
        if not shown.parameters:
            self.note = NO_WEIGHTS
        if self._fits(shown.factors):
            wanted |= shown.factors
        self._set_quietly(wanted)

    def _fits(self, factors: Mapping[str, int]) -> bool:
        layers = self.controls["num_layers"]
        return bool(factors) and (
            factors["num_layers"] <= layers.max
            and factors["num_kv_heads"] in KV_HEADS
            and factors["head_dim"] in HEAD_DIMS
        )

    def _set_quietly(self, values: Mapping[str, object]) -> None:
        self._held = True
        try:
            for name, value in values.items():
                self.controls[name].value = value
        finally:
            self._held = False

    def _enable_sliders(self) -> None:
        off = self.controls["model"].value != OWN and not self._fits(self.shown.factors)
        for name in SLIDERS:
            self.controls[name].disabled = off

    def _draw(self, **values: Any) -> Frame:
        name = values["model"]
        if name == OWN:
            storage = memory_model.own(*(values[factor] for factor in SLIDERS))
        else:
            storage = self.shown.storage
        title = {OWN: OWN, PASTED: storage.name}.get(name, name.rsplit("/", 1)[-1])
        exact = None if name == OWN else self.shown.parameters
        return memory_frame(storage, title, values, parameters=exact, scale=self.scale)


def memory_explorer(*, scale: float = 1.0) -> MemoryExplorer:
    """Return the memory explorer, on Llama 3.1 8B with 24 users of 8,192 tokens.

    >>> show = memory_explorer()
    >>> show.numbers["one token"], show.numbers["cache = weights at"]
    ('128.00 KiB (131.07 kB)', '14.96 users')
    >>> show.controls["num_kv_heads"].value = 32
    >>> show.controls["model"].value, show.numbers["one token"]
    ('your own numbers', '512.00 KiB (524.29 kB)')
    """
    return MemoryExplorer(scale=scale)

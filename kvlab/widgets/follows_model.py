"""A mixin for explorers in which another model brings its own choices of KV heads."""

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets

from kvlab.widgets.base import Explorer
from kvlab.widgets.controls import set_options


class FollowsModel(Explorer):
    """An explorer with the controls `model` and `num_kv_heads`; `_shown_model` is set beforehand.

    A subclass says in `heads_of` what a model may be given, and which of it comes first.
    """

    controls: Mapping[str, widgets.Widget]
    _shown_model: str

    def heads_of(self, model: str) -> tuple[list[Any], object]:
        """Return the options of `num_kv_heads` for a model, and the value to start with."""
        raise NotImplementedError(f"{type(self).__name__} must say the KV heads of {model}")

    def set(self, **values: object) -> None:
        """Set several controls and redraw once; a model comes first, with its own KV heads."""
        if "model" in values:
            self._held = True
            self.controls["model"].value = values.pop("model")
            self._follow_model()
        super().set(**values)

    def redraw(self) -> None:
        """Draw the present values; a model that was just chosen brings its own KV heads."""
        self._follow_model()
        super().redraw()

    def _follow_model(self) -> None:
        model = self.controls["model"].value
        if model == self._shown_model:
            return
        self._shown_model, before = model, self._held
        self._held = True
        try:
            set_options(self.controls["num_kv_heads"], *self.heads_of(model))
        finally:
            self._held = before

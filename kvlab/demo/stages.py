"""What a demo is made of: stages, each a widget of the course, and presets that make one point.

A preset's sentence is a template without a digit: every number in it is filled in from what the
widget or `kvlab.arithmetic` computed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from kvlab.errors import InvalidArgument

Facts = Callable[[Any], Mapping[str, str]]


def no_facts(widget: Any) -> Mapping[str, str]:
    """Return no facts beside the widget's own numbers.

    >>> no_facts(None)
    {}
    """
    return {}


@dataclass(frozen=True)
class Preset:
    """One click, one point: what to do to the widget, and the sentence to show after it.

    In `sentence`, `{n[...]}` is one of the widget's numbers, `{v[...]}` the value of a control in
    words, and any other name one of `facts(widget)`. With a question in `asks`, that is shown at
    the click and the sentence when the class has looked (the widget's control `shown`).
    """

    name: str
    do: Callable[[Any], object]
    sentence: str
    facts: Facts = no_facts
    asks: str = ""


@dataclass(frozen=True)
class Stage:
    """One widget of a demo: its name, how it is built, what the arrow keys step, its presets.

    `arrows` names a control, or two buttons as "back next"; "" steps nothing.
    """

    name: str
    build: Callable[[], Any]
    arrows: str = ""
    presets: tuple[Preset, ...] = ()


@dataclass(frozen=True)
class Demo:
    """One row of the registry; `target` is "module:attribute" of its stages, read when needed."""

    name: str
    chapter: str
    minutes: int
    point: str
    title: str
    target: str = field(repr=False)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the demo; the first one is shown first."""
        module, attribute = self.target.split(":")
        return tuple(getattr(import_module(module), attribute))

    def preset(self, name: str) -> tuple[int, Preset]:
        """Return a preset and the place of its stage.

        Raises `InvalidArgument` naming those there are.
        """
        every = [(at, one) for at, stage in enumerate(self.stages) for one in stage.presets]
        for place, one in every:
            if one.name == name:
                return place, one
        rule = f"must be one of {', '.join(one.name for _, one in every)}"
        raise InvalidArgument("preset", name, rule)


def put(**values: Any) -> Callable[[Any], object]:
    """Return what sets several controls of a widget at once.

    >>> from kvlab.widgets.work_explorer import work_explorer
    >>> show = work_explorer()
    >>> put(new_tokens=1)(show)
    >>> show.numbers["FLOP ratio"]
    '1.0x'
    """
    return lambda widget: widget.set(**values)


def words_of(control: Any) -> str:
    """Return the value of a control as people read it.

    >>> from kvlab.widgets.controls import powers
    >>> words_of(powers("tokens", 4096, 512, 8192))
    '4,096'
    """
    label, value = getattr(control, "label", None), getattr(control, "value", None)
    if isinstance(label, str):
        return label
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def filled(template: str, widget: Any, facts: Facts = no_facts) -> str:
    """Return a sentence with its numbers filled in; "" stays "".

    >>> from kvlab.widgets.work_explorer import work_explorer
    >>> filled("P = {v[prompt_tokens]}: {n[FLOP ratio]}", work_explorer())
    'P = 2,048: 845.5x'
    """
    if not template:
        return ""
    values = {name: words_of(control) for name, control in widget.controls.items()}
    return template.format(n=widget.numbers, v=values, **facts(widget))

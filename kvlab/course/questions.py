"""Questions as data: what each kind holds. Loading lies in `question_loader`, asking in `asked`.

A question's repr never shows its answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

KINDS = ("numeric", "choice", "find-error", "order", "shape", "open")
LEVELS = {1: "first steps", 2: "core", 3: "deep"}
SETS = ("placement", "diagnostic", "interview")


@dataclass(frozen=True)
class Question:
    """What every question has.

    `chapter` and `anchor` name the cell that teaches it: an element with that id in the chapter.
    `explain` is the worked answer; it may use the question's variables and `{answer}`.
    """

    id: str
    kind: str
    topic: str
    level: int
    chapter: str
    anchor: str
    text: str
    explain: str = field(repr=False)
    source: str
    as_of: date
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class WrongWay:
    """A misconception: how its value comes about, and what to say to it."""

    id: str
    value: Any = field(repr=False)
    feedback: str


@dataclass(frozen=True)
class Fresh:
    """Where fresh numbers come from, and the answer as an expression over them."""

    numbers: Mapping[str, Any] = field(repr=False)
    cases: tuple[Mapping[str, Any], ...] = field(repr=False)
    answer: Any = field(repr=False)
    wrong_ways: tuple[WrongWay, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class NumericQuestion(Question):
    """A number with fresh values each time; `unit` is what a bare number is read in."""

    fresh: Fresh = field(kw_only=True)
    unit: str = field(kw_only=True)
    exact: bool = field(kw_only=True)
    tolerance: float = field(kw_only=True)
    words: tuple[str, ...] = field(kw_only=True)
    per: str = field(kw_only=True)


@dataclass(frozen=True)
class ShapeQuestion(Question):
    """The shape of a tensor with fresh values; `axes` names its dimensions in order."""

    fresh: Fresh = field(kw_only=True)
    axes: tuple[str, ...] = field(kw_only=True)


@dataclass(frozen=True)
class Option:
    """An option of a choice, or a line of a find-the-error card, with its reason."""

    text: str
    right: bool = field(repr=False)
    why: str = field(repr=False)


@dataclass(frozen=True)
class ChoiceQuestion(Question):
    """One right option among several (kind "choice"), or one faulty line ("find-error")."""

    options: tuple[Option, ...] = field(kw_only=True)


@dataclass(frozen=True)
class OrderQuestion(Question):
    """Steps to bring into order; `steps` lists them in the right one, `whys` why each follows."""

    steps: tuple[str, ...] = field(kw_only=True, repr=False)
    whys: tuple[str, ...] = field(kw_only=True, repr=False)


@dataclass(frozen=True)
class OpenQuestion(Question):
    """A spoken answer to mark oneself: the first point is for saying the scope."""

    rubric: tuple[str, ...] = field(kw_only=True)
    in_30_seconds: str = field(kw_only=True, repr=False)
    in_two_minutes: str = field(kw_only=True, repr=False)

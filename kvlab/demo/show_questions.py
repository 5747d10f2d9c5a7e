"""The demo `questions`: the question bank for a room, with fresh numbers; nothing is kept."""

from random import randrange
from typing import Any

import ipywidgets as widgets

from kvlab.course.asked import ask
from kvlab.course.bank import select_questions
from kvlab.course.schema import TOPICS
from kvlab.demo.stages import Preset, Stage, put
from kvlab.errors import InvalidArgument
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import dropdown, observe_once
from kvlab.widgets.quiz import Quiz

EVERY, ANY = "every topic", "every kind"
KINDS = {
    ANY: "",
    "a number": "numeric",
    "one of several": "choice",
    "find the error": "find-error",
    "put in order": "order",
    "spoken": "open",
}
NONE = "No question is like that: choose another topic or kind. The question above stays."


class RoomQuestions(Quiz):
    """Questions one at a time; `topic` and `kind` say which, and `seed` fixes their numbers."""

    def __init__(self, *, seed: int | None = None) -> None:
        self.seed, self.remark = seed, ""
        super().__init__(self._drawn(EVERY, ""), fixed=seed is not None)
        for name in ("topic", "kind"):
            observe_once(self.controls[name], self._on_choice)

    def _make_controls(self) -> dict[str, widgets.Widget]:
        made: dict[str, widgets.Widget] = {"topic": dropdown("topic", [EVERY, *TOPICS], EVERY)}
        made["kind"] = dropdown("kind", list(KINDS.items()), "")
        return made | super()._make_controls()

    def _drawn(self, topic: str, kind: str) -> list[Any]:
        pool = select_questions(topic=None if topic == EVERY else topic)
        pool = tuple(one for one in pool if kind in ("", one.kind))
        seed = randrange(10**6) if self.seed is None else self.seed
        return ask(pool, seed=seed, count=len(pool)) if pool else []

    def set(self, **values: Any) -> None:
        """Choose topic and kind; the first question like that is asked."""
        if unknown := set(values) - {"topic", "kind"}:
            raise InvalidArgument("control", sorted(unknown)[0], "must be topic or kind")
        self._held = True
        for name, value in values.items():
            self.controls[name].value = value
        self._held = False
        self._choose()

    def _on_choice(self, change: object) -> None:
        if not self._held:
            self._choose()

    def _choose(self) -> None:
        drawn = self._drawn(self.controls["topic"].value, self.controls["kind"].value)
        self.remark = "" if drawn else NONE
        if drawn:
            self.asked, self.right = drawn, set()
            self._turn_to(0)
        else:
            self._draw()

    def show_frame(self, frame: Frame) -> None:
        """Put a frame on the page, with what the choice of questions has to say."""
        said = self.remark or frame.event
        super().show_frame(Frame(frame.picture, frame.readout, said, frame.numbers_in_picture))


def _preset(name: str, sentence: str, **values: str) -> Preset:
    return Preset(name, put(**values), sentence)


QUESTIONS = (
    Stage(
        "the question bank",
        RoomQuestions,
        "back next",
        (
            _preset(
                "A number to compute",
                "Question {n[question]}. Everybody writes down a number with its unit before "
                "anybody speaks.",
                topic="memory", kind="numeric",
            ),
            _preset(
                "Hands up",
                "Question {n[question]}. Count hands for each letter, then let the smallest group "
                "argue first.",
                topic=EVERY, kind="choice",
            ),
            _preset(
                "Find the error",
                "Question {n[question]}. Which line is wrong, and what would it be if it were "
                "right?",
                topic=EVERY, kind="find-error",
            ),
            _preset(
                "Say it aloud",
                "Question {n[question]}. One speaks, another asks back once, the room ticks the "
                "points. The first point is the scope.",
                topic=EVERY, kind="open",
            ),
        ),
    ),
)  # fmt: skip

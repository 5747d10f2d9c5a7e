"""A timed mock interview: mixed questions, no hints, no feedback until it has ended.

The time is the kernel's own clock, shown every second by the kernel's event loop, without a
thread. Stopping hides the question, so that nobody thinks on. Enter answers and goes on.
"""

import asyncio
import time
from collections.abc import Callable
from random import randrange

import ipywidgets as widgets

from kvlab.course.interview import Interview, Stage
from kvlab.course.mock import GRADED, SPOKEN, draw_interview, minutes_and_seconds
from kvlab.course.progress import Progress
from kvlab.course.question_html import how_to_answer
from kvlab.course.questions import OpenQuestion
from kvlab.figures.tables import note
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import button, observe_once
from kvlab.widgets.interview_frames import interview_numbers, interview_picture
from kvlab.widgets.point_ticks import PointTicks

_GO = {Stage.READY: "start", Stage.RUNNING: "stop the clock"}


class MockInterview(Panel):
    """An interview on the page; `controls` holds answer, points, go, next and end.

    `talk` is the interview itself: its stage, its questions, its grades.
    """

    def __init__(self, talk: Interview) -> None:
        self.talk = talk
        self._task: asyncio.Task[None] | None = None
        self.ticks, self.clock = PointTicks(), widgets.HTML()
        self.controls = self._make_controls()
        super().__init__("interview", [self.clock, *self.controls.values()], below=True)
        observe_once(self.controls["answer"], self._on_answer)
        self._show()

    def _make_controls(self) -> dict[str, widgets.Widget]:
        """Build the controls in the order in which Tab visits them."""
        entry = widgets.Text(
            description="your answer",
            continuous_update=False,
            style={"description_width": "initial"},
            layout=widgets.Layout(width="420px"),
        )
        return {
            "go": button("start", self.go, hint="start, stop the clock, or go on"),
            "answer": entry,
            "points": self.ticks.row,
            "next": button("next", self.next, hint="leave this question for good"),
            "end": button("end the interview", self.end, hint="end it and see the report"),
        }

    def go(self) -> None:
        """Start, stop the clock, or go on."""
        self.talk.go()
        self._start_ticking()
        self._show()
        self._lead()

    def next(self) -> None:
        """Leave this question, or keep the points that are ticked."""
        if self.talk.stage is Stage.MARKING:
            self.talk.mark(self.ticks.made)
        else:
            self.talk.next()
        self._show()
        self._lead()

    def end(self) -> None:
        """End the interview: mark what was spoken, then see the report."""
        self.talk.end()
        self._show()
        self._lead()

    def tick(self) -> None:
        """Show the time, and the end when it is up."""
        self._show("The time is up.") if self.talk.check_time() else self._show_clock()

    def _on_answer(self, change: object) -> None:
        typed = self.controls["answer"].value
        if not typed.strip():
            return
        form = how_to_answer(self.talk.current)
        taken = self.talk.answer(typed)
        unread = not taken and self.talk.stage is Stage.RUNNING
        self._show(f"This cannot be read. {form}" if unread else "", keep=unread)
        self._lead()

    def _lead(self) -> None:
        """Put the focus where the next question is answered, so that nobody has to look for it.

        Only after a key or a click of the learner's: a clock must not take the focus away.
        """
        stage, typed = self.talk.stage, not self.talk.is_spoken
        where = {Stage.RUNNING: "answer" if typed else "next", Stage.STOPPED: "go"}.get(stage)
        control = self.ticks.boxes[0] if stage is Stage.MARKING else self.controls.get(where or "")
        if hasattr(control, "focus"):  # not in ipywidgets 7
            control.focus()

    def _start_ticking(self) -> None:
        """Show the time each second where an event loop runs; without one each action does."""
        if self.talk.stage is Stage.RUNNING and (self._task is None or self._task.done()):
            try:
                self._task = asyncio.get_running_loop().create_task(self._ticking())
            except RuntimeError:
                return

    async def _ticking(self) -> None:
        while self.talk.stage is Stage.RUNNING:
            await asyncio.sleep(1)
            self.tick()

    def _show_clock(self) -> None:
        stage, left = self.talk.stage, minutes_and_seconds(self.talk.watch.left)
        words = f"{left} left" + (", stopped" if stage is Stage.STOPPED else "")
        over = stage in (Stage.MARKING, Stage.DONE)
        self.clock.value = "" if over else note(words).replace('role="status"', 'role="timer"')

    def _show(self, event: str = "", *, keep: bool = False) -> None:
        """Show the controls and the picture of the stage; `keep` leaves what was typed."""
        talk, stage = self.talk, self.talk.stage
        if not keep:
            self.controls["answer"].value = ""
        asks = (Stage.READY, Stage.RUNNING, Stage.STOPPED)
        shown = {"answer": stage is Stage.RUNNING and not talk.is_spoken, "go": stage in asks}
        shown["next"] = stage in (Stage.RUNNING, Stage.MARKING)
        shown["end"] = stage in (Stage.RUNNING, Stage.STOPPED)
        for name, there in shown.items():
            self.controls[name].layout.display = None if there else "none"
        self.controls["answer"].placeholder = how_to_answer(talk.current)
        self.controls["go"].description = _GO.get(stage, "go on")
        self.controls["next"].description = self._next_words()
        self.ticks.hide()
        if stage is Stage.MARKING and isinstance(talk.current.question, OpenQuestion):
            self.ticks.ask(len(talk.current.question.rubric))
        self._show_clock()
        said = " ".join(words for words in (event, talk.note) if words)
        self.show_frame(Frame(interview_picture(talk), interview_numbers(talk), said))

    def _next_words(self) -> str:
        if self.talk.stage is Stage.MARKING:
            return "keep these points"
        return "I have said it" if self.talk.is_spoken else "leave it, next question"


def mock_interview(
    *,
    minutes: float = 30,
    spoken: int = SPOKEN,
    graded: int = GRADED,
    seed: int | None = None,
    progress: Progress | None = None,
    now: Callable[[], float] = time.monotonic,
) -> MockInterview:
    """Return a mock interview; answers go to the learner's own file, or where `progress` says.

    >>> mock_interview(minutes=5, spoken=0, graded=2, seed=1).numbers
    {'questions': '2'}
    """
    drawn = randrange(10**6) if seed is None else seed
    chosen = draw_interview(drawn, spoken=spoken, graded=graded)
    kept = Progress() if progress is None else progress
    return MockInterview(Interview(chosen, minutes=minutes, progress=kept, now=now))
